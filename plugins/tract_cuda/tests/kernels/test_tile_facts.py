"""What becomes of every tile, and of every choice that was measured: nothing is laid down in memory.

With ``TRACT_CUDA_ALL``, in all forms, on every architecture with code of its own; else in a few.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, Final

import pytest
from test_products import case
from tract_cuda.kernels.products.mma import MmaPlan, MmaTile
from tract_cuda.kernels.products.tile import Tile, TilePlan
from tract_cuda.kernels.windows import Windows
from tract_cuda.language.arch import ARCHS, Arch
from tract_cuda.products.measured import TABLE
from tract_cuda.products.product import FLAT, FLAT_MMA, MMA_TILES, OTHERS, OTHERS_MMA, TILES, AnyTile, add_tiles
from tract_cuda.program import Launch
from tract_cuda.ptx import written
from tract_cuda.testing.static_facts import facts
from tract_llvm.language.types import F16, F32

pytestmark = pytest.mark.nvcc

ALL: Final = bool(os.environ.get("TRACT_CUDA_ALL"))
TOLD_APART: Final = [one for one in ARCHS if one.name in {"sm_80", "sm_89", "sm_90a", "sm_100a"}]
SHOWN: Final = TOLD_APART if ALL else [one for one in TOLD_APART if one.name in {"sm_80", "sm_90a"}]

Plan = TilePlan | MmaPlan

REGISTERS: Final[Mapping[str, int]] = {
    "tile 128x128x8 8x8": 160,
    "tile 128x64x8 8x4": 128,
    "tile 64x64x16 4x4": 112,
    "tile 32x32x16 2x2": 96,
    "tile 16x64x32 1x4": 112,
    "tile 64x128x8 4x8": 112,
    "tile 128x128x16 8x8": 200,
    "tile 64x64x8 8x8": 192,
    "tile 64x32x16 4x4": 128,
    "tile 32x64x16 4x4": 120,
    "tile 32x64x32 2x4": 112,
    "tile 32x32x32 4x4": 232,
    "tile 16x32x32 2x2": 112,
    "tile 16x128x16 2x4": 96,
    "tile 8x64x32 1x4": 136,
    "tile 4x128x32 1x4": 200,
    "mma 128x128x32": 160,
    "mma 128x64x32": 160,
    "mma 64x64x64": 128,
    "mma 32x64x64": 72,
    "mma 16x64x64": 56,
    "mma 128x128x64": 255,
    "mma 128x256x32": 240,
    "mma 256x128x32": 248,
    "mma 64x128x64": 168,
    "mma 128x64x64": 168,
    "mma 64x64x32": 96,
    "mma 64x32x64": 160,
    "mma 32x32x64": 96,
    "mma 16x128x64": 88,
}
"""How many registers kernels of a tile have at most, in any form, on any architecture."""


def name_of(tile: AnyTile) -> str:
    """Sizes of the tile, and how many sums a thread has."""
    kind = "mma" if isinstance(tile, MmaTile) else "tile"
    each = f" {tile.down}x{tile.across}" if isinstance(tile, Tile) else ""
    return f"{kind} {tile.rows}x{tile.columns}x{tile.depth}{each}"


def plan_of(tile: AnyTile, size: int = 256, *, turned: tuple[bool, bool] = (False, False), parts: int = 1) -> Plan:
    """Of a product of matrices of a size; ``turned``: which factor lies the other way round."""
    element = F16 if isinstance(tile, MmaTile) else F32
    one = case(element, (1, size, size, size), turned=turned)
    add_tiles(one.lowering, one.product, (tile, parts), ())
    found: Any = next(step.kernel for step in one.lowering.steps if isinstance(step, Launch))
    return found


def of_windows(plan: Plan, window: tuple[int, ...], channels: int) -> Plan:
    """The same where the left factor is windows of a convolution, with so many channels."""
    read = Windows(window, channels % plan.tile.depth == 0)
    if isinstance(plan, MmaPlan):
        return replace(plan, windows=read)
    return replace(plan, windows=read, inner_left=True, wide_left=4 if channels % 4 == 0 else 1)


def few(tile: AnyTile) -> Iterator[Plan]:
    """As it is used most: of matrices, and of windows with whole tiles of channels, and with few channels."""
    yield plan_of(tile, turned=(False, True))
    plain = plan_of(tile)
    yield of_windows(plain, (3, 3), 64)
    yield of_windows(plain, (3, 3), 8 if isinstance(tile, MmaTile) else 3)


def others(tile: AnyTile) -> Iterator[Plan]:
    """All other forms: any layout, odd sizes, parts of the depth, windows along more and fewer axes."""
    layouts = ((False, False), (False, True)) if isinstance(tile, MmaTile) else product((False, True), repeat=2)
    for turned in layouts:
        yield plan_of(tile, turned=turned)
        yield plan_of(tile, turned=turned, parts=3)
        if isinstance(tile, Tile):
            yield plan_of(tile, 255, turned=turned)
    for parts in (1, 3):
        plain = plan_of(tile, parts=parts)
        for window, channels in (((3, 3), 24), ((7, 7), 8), ((3,), 80), ((2, 2, 2), 8)):
            yield of_windows(plain, window, channels)
        if isinstance(tile, Tile):
            yield of_windows(plain, (7, 7), 3)


EVERY: Final = (*TILES, FLAT, *OTHERS, *MMA_TILES, FLAT_MMA, *OTHERS_MMA)


@pytest.mark.parametrize("arch", SHOWN, ids=lambda arch: arch.name)
@pytest.mark.parametrize("tile", EVERY, ids=name_of)
def test_no_tile_is_short_of_registers(tile: AnyTile, arch: Arch) -> None:
    plans = [*few(tile), *(others(tile) if ALL else ())]
    for plan in dict.fromkeys(plans):
        found = facts(written(plan, arch), arch)
        assert (found.spilled, found.stack) == (0, 0), plan
        assert found.registers <= REGISTERS[name_of(tile)], plan


def test_tiles_are_told_apart() -> None:
    assert len(set(map(name_of, EVERY))) == len(EVERY) == len(REGISTERS)


WINDOWS: Final[Mapping[int, tuple[int, ...]]] = {147: (7, 7), 240: (3,), 768: (16, 16)}
"""The windows of measured convolutions by the depth of their products; all others have 3 by 3."""


def measured_plan(key: str, tile: Tile, parts: int) -> TilePlan:
    """The kernel of a product that was measured."""
    sizes, left, right, *_ = key.split()
    _, _, columns, depth = map(int, re.findall(r"\d+", sizes))
    plan: Any = plan_of(tile, 256, turned=(left == "outer", right == "inner"), parts=parts)
    if left == "windows":
        window = WINDOWS.get(depth, (3, 3))
        plan = of_windows(plan, window, depth // prod(window))
    return plan if columns % 4 == 0 else replace(plan, wide_right=1)


@pytest.mark.parametrize("family", json.loads(TABLE.read_text()))
def test_no_measured_choice_is_short_of_registers(family: str) -> None:
    rows = json.loads(TABLE.read_text())[family]
    plans = {
        measured_plan(key, Tile(*sizes), parts): key for key, (*sizes, parts) in rows.items() if "cores" not in key
    }
    assert len(plans) > 20
    for arch in [one for one in ARCHS if one.name.rstrip("a") == family and (ALL or one.exact)]:
        for plan, key in plans.items():
            found = facts(written(plan, arch), arch)
            assert (found.spilled, found.stack) == (0, 0), key


@pytest.mark.parametrize("tile", [*MMA_TILES, FLAT_MMA, *OTHERS_MMA], ids=name_of)
def test_all_products_of_halves_are_made_by_tensor_cores(tile: MmaTile) -> None:
    plain = plan_of(tile)
    for plan in (plain, of_windows(plain, (3, 3), 64)):
        text = written(plan, ARCHS[0]).text
        warps = plan.threads // 32
        assert len(re.findall(r"\bmma\.sync\S*m16n8k16", text)) == tile.rows * tile.columns * tile.depth // (
            2048 * warps
        )
        assert not re.search(r"fma\.rn\.f(16|32)", text)
        assert "cp.async.cg" in text
        assert "ldmatrix" in text
