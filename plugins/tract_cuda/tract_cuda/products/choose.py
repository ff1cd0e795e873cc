"""Which kernel computes a product, with which tiles: what was measured, else a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.language.types import I32
from tract_llvm.program.storages import Kind
from tract_llvm.program.views import View

from tract_cuda.lowering import Lowering
from tract_cuda.products.measured import measured
from tract_cuda.products.product import (
    Product,
    add_dots,
    add_tiles,
    add_vectors,
    add_vectors_in_blocks,
    by_rule,
    factors_of,
)

_TILED_BITS = (32, 64)
"""Of the types in which tiles sum."""

MOST_ROWS = 4
"""Of so few rows, each number of the other factor is read by one thread."""


def add_product(lowering: Lowering, product: Product, nodes: Sequence[int]) -> None:
    """Add the launches of a product."""
    if product.sums.bits not in _TILED_BITS and product.windows is None:
        add_dots(lowering, product, nodes)
        return
    target = lowering.target
    product = as_read(lowering, replace(product, tf32=target.tf32))
    rows = product.result.shape[1]
    if isinstance(rows, int) and rows <= MOST_ROWS and product.windows is None:
        add = add_vectors if product.blocks is None else add_vectors_in_blocks
        add(lowering, product, nodes)
        return
    choice = measured(product, target.arch) or by_rule(product, target.multiprocessors)
    add_tiles(lowering, product, choice, nodes)


def as_read(lowering: Lowering, product: Product) -> Product:
    """The product with factors of bytes that are part of the model lying along the depth, as tensor cores read them."""
    if product.sums is not I32 or product.blocks is not None:
        return product
    left, right = product.left, product.right
    turned = replace(product, right=_along(lowering, right.transposed((0, 2, 1))).transposed((0, 2, 1)))
    if product.windows is None:
        turned = replace(turned, left=_along(lowering, left))
    return product if factors_of(turned) is None else turned


def _along(lowering: Lowering, view: View) -> View:
    """Matrices with the last axis side by side, where that can be done before the model runs; else as they are."""
    if view.strides[2] == 1 or view.storage.kind is not Kind.CONSTANT:
        return view
    same = view.strides[0] == 0
    kept = lowering.packed(replace(view, shape=(1, *view.shape[1:])) if same else view)
    return kept.stretched(view.shape)
