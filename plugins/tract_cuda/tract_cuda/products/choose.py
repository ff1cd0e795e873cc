"""Which kernel computes a product, with which tiles: what was measured, else a rule."""

from __future__ import annotations

from collections.abc import Sequence

from tract_cuda.lowering import Lowering
from tract_cuda.products.measured import measured
from tract_cuda.products.product import Product, add_dots, add_tiles, add_vectors, add_vectors_in_blocks, by_rule

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
    rows = product.result.shape[1]
    if isinstance(rows, int) and rows <= MOST_ROWS and product.windows is None:
        add = add_vectors if product.blocks is None else add_vectors_in_blocks
        add(lowering, product, nodes)
        return
    choice = measured(product, target.arch) or by_rule(product, target.multiprocessors)
    add_tiles(lowering, product, choice, nodes)
