"""What becomes of products of bytes, and of f32 cut to 10 bits, on each architecture: registers, tensor cores.

With ``TRACT_CUDA_ALL``, of every tile, on every architecture with code of its own; else of a few.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from test_narrow_products import Case
from tract_cuda.kernels.products.mma import MmaPlan, MmaTile
from tract_cuda.kernels.windows import Windows
from tract_cuda.language.arch import ARCHS, Arch
from tract_cuda.language.matrices import Factors
from tract_cuda.products.product import OTHERS_MMA, add_tiles, as_deep, tiles_for
from tract_cuda.ptx import written
from tract_cuda.testing.static_facts import facts
from tract_llvm.elements.expressions import Expression, element_of
from tract_llvm.language.types import F32, I8, I32, U8
from tract_llvm.llvm_only.on_steps import Requantize

from tract_core.data import DatumType
from tract_core.plugins import default_registry

ALL: Final = bool(os.environ.get("TRACT_CUDA_ALL"))
TOLD_APART: Final = [one for one in ARCHS if one.name in {"sm_80", "sm_89", "sm_90a", "sm_100a"}]
SHOWN: Final = TOLD_APART if ALL else TOLD_APART[:1]

KINDS: Final = {"bytes": Factors(U8, I8), "tf32": Factors(F32, F32)}
MADE_BY: Final = {"bytes": r"\bmma\.sync\S*m16n8k32\S*s32\.u8\.s8\.s32", "tf32": r"\bmma\.sync\S*m16n8k8\S*tf32"}

SPACE: Final = {"bytes": 32, "tf32": 8}
"""What of the depth one instruction sums."""


def case(kind: str, *, inner: bool) -> Case:
    types = {"bytes": ("u1", "i1"), "tf32": ("f4", "f4")}[kind]
    left, right = (np.zeros((1, 256, 256), one) for one in types)
    return Case(left, right, KINDS[kind].sums, inner=inner, tf32=True)


def tiles(kind: str) -> list[MmaTile]:
    """Those of the rule; with all, those too that only measurements choose."""
    chosen, flat = tiles_for(case(kind, inner=True).product)
    found = [*chosen, flat, *([as_deep(one, KINDS[kind]) for one in OTHERS_MMA] if ALL else [])]
    return [one for one in found if isinstance(one, MmaTile)]


TILES: Final = [(kind, tile) for kind in KINDS for tile in tiles(kind)]


def plan_of(kind: str, tile: MmaTile, *, inner: bool, parts: int = 1) -> MmaPlan:
    one = case(kind, inner=inner)
    add_tiles(one.lowering, one.product, (tile, parts), ())
    found: Any = one.lowering.steps[0]
    return found.kernel


def in_steps() -> Expression:
    """What stands behind sums of bytes: other steps, from another zero point."""
    op, given = Requantize(DatumType.U8), (I32, F32, F32, U8)
    found = element_of(default_registry(), op, given, U8)
    assert found is not None
    return Expression(given, (found.applied(op, (0, 1, 2, 3), U8),))


def forms(kind: str, tile: MmaTile) -> Iterator[MmaPlan]:
    """As it is used: of matrices and windows, with what is behind; f32 with columns side by side too."""
    plain = plan_of(kind, tile, inner=True)
    if kind == "bytes":
        plain = replace(plain, expression=in_steps())
    yield plain
    yield replace(plain, windows=Windows((3, 3), 64 % tile.depth == 0))
    if kind == "tf32":
        yield plan_of(kind, tile, inner=False)
    if ALL:
        yield plan_of(kind, tile, inner=True, parts=3)
        yield replace(plain, windows=Windows((3,), whole=False))


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", SHOWN, ids=lambda arch: arch.name)
@pytest.mark.parametrize(("kind", "tile"), TILES, ids=str)
def test_no_tile_is_short_of_registers(kind: str, tile: MmaTile, arch: Arch) -> None:
    for plan in forms(kind, tile):
        found = facts(written(plan, arch), arch)
        assert (found.spilled, found.stack) == (0, 0), plan
        assert found.registers <= 255, plan


@pytest.mark.parametrize(("kind", "tile"), TILES, ids=str)
def test_products_are_made_by_tensor_cores(kind: str, tile: MmaTile) -> None:
    for plan in forms(kind, tile):
        text, warps = written(plan, ARCHS[0]).text, plan.threads // 32
        found = len(re.findall(MADE_BY[kind], text))
        assert found == tile.rows * tile.columns * tile.depth // (16 * 8 * SPACE[kind] * warps)
        assert "cp.async.cg" in text
        assert ("cvt.rna.tf32.f32" in text) == (kind == "tf32")
