"""Which tiles were measured to be best, by the sizes of products: `tools/tune_products.py` writes the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tract_cuda.kernels.products.mma import MmaTile
from tract_cuda.kernels.products.tile import Tile
from tract_cuda.language.arch import Arch
from tract_cuda.products.product import AnyTile, Choice, Product, factors_of

TABLE: Final = Path(__file__).with_name("measured.json")


def measured(product: Product, arch: Arch) -> Choice | None:
    """The tile, and in how many parts the depth is summed; ``None`` where nobody measured such a product."""
    key = key_of(product)
    found = None if key is None else _table().get(_family(arch.name), {}).get(key)
    if found is None:
        return None
    *numbers, parts = found
    kind: type[AnyTile] = Tile if factors_of(product) is None else MmaTile
    return kind(*numbers), parts


def key_of(product: Product) -> str | None:
    """What products are told from each other by; ``None`` where a size is not known before the run, and for blocks."""
    sizes = (*product.result.shape, product.depth)
    if product.blocks is not None or not all(isinstance(one, int) for one in sizes):
        return None
    left = "windows" if product.windows is not None else _lies(inner=product.inner_left)
    cores = () if factors_of(product) is None else ("cores",)
    types = (product.left.element.name, product.right.element.name, product.sums.name)
    return " ".join(("x".join(map(str, sizes)), left, _lies(inner=product.inner_right), *cores, *types))


def _lies(*, inner: bool) -> str:
    return "inner" if inner else "outer"


def _family(arch: str) -> str:
    """Architectures of one name with and without instructions of their own have the same tiles."""
    return arch.rstrip("a")


@cache
def _table() -> Mapping[str, Mapping[str, tuple[int, ...]]]:
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}
