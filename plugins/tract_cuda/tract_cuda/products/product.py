"""A product of matrices, as what reads and writes it lies in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import ElementType
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.dims import product as product_of
from tract_core.frozen import frozen
from tract_cuda.kernels.dot import THREADS, DotPlan
from tract_cuda.lowering import Lowering


@frozen
class Product:
    """A product of matrices, for many pairs of them, and what is computed of each element of the result.

    ``left``: [pairs, rows, depth]; ``right``: [pairs, depth, columns]; ``operands``, ``result``: [pairs, rows,
    columns]; the factors and operands with any strides, 0 among them. ``sums``: in which type products are summed.
    ``expression``: its first input is the sum, rounded to that type; the others are the operands.
    """

    left: View
    right: View
    operands: tuple[View, ...]
    result: View
    sums: ElementType
    expression: Expression


def add_product(lowering: Lowering, product: Product, nodes: Sequence[int]) -> str | None:
    """Add the launches of a product. Returns why there are none."""
    plan = DotPlan(product.left.element, product.right.element, product.sums, product.expression)
    given: dict[str, View | Dim] = {f"size{axis}": size for axis, size in enumerate(product.result.shape)}
    given["depth"] = product.left.shape[2]
    tensors = {"left": product.left, "right": product.right, "result": product.result}
    tensors |= {f"operand{number}": one for number, one in enumerate(product.operands)}
    for name, view in tensors.items():
        given[name] = view
        given |= {f"{name}.{axis}": stride for axis, stride in enumerate(view.strides)}
    count = product_of(product.result.shape)
    lowering.launch(plan, [(count + THREADS - 1) // THREADS], given, [product.result], nodes)
    return None
