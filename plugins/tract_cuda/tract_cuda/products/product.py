"""A product of matrices, as what reads and writes it lies in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.program.views import View

from tract_core.frozen import frozen
from tract_cuda.lowering import Lowering


@frozen
class Product:
    """A product of matrices, for many pairs of them, and what is computed of each element of the result.

    ``left``: [pairs, rows, depth]; ``right``: [pairs, depth, columns]; ``operands``, ``result``: [pairs, rows, columns];
    the factors and operands with any strides, 0 among them. ``expression``: its first input is the sum, rounded to that
    type; the others are the operands.
    """

    left: View
    right: View
    operands: tuple[View, ...]
    result: View
    expression: Expression


def add_product(lowering: Lowering, product: Product, nodes: Sequence[int]) -> str | None:
    """Add the launches of a product. Returns why there are none."""
    return "there are no kernels for products yet"
