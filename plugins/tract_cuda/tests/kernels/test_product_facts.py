"""What becomes of products and attention on each architecture: registers suffice, and tensor cores are used."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from test_attention import LARGE, masked, mma_plan, plan_for
from test_products import case
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.language.arch import ARCHS, Arch
from tract_cuda.lower.attention import MMA_KEYS
from tract_cuda.products.product import FLAT, FLAT_MMA, MMA_TILES, TILES, add_tiles, add_vectors
from tract_cuda.program import Launch
from tract_cuda.ptx import written
from tract_cuda.testing.static_facts import facts
from tract_llvm.language.types import F16, F32


def product(tile, *, inner: bool) -> KernelPlan:
    one = case(F16 if tile in {*MMA_TILES, FLAT_MMA} else F32, (1, 256, 256, 256), turned=(False, inner))
    add_tiles(one.lowering, one.product, (tile, 1), ())
    return launched(one)


def vector(element, *, inner: bool) -> KernelPlan:
    one = case(element, (1, 1, 256, 256), turned=(False, inner))
    add_vectors(one.lowering, one.product, ())
    return launched(one)


def launched(one) -> KernelPlan:
    (plan,) = [step.kernel for step in one.lowering.steps if isinstance(step, Launch)]
    return plan


PLANS = {
    **{f"tile {one.rows}x{one.columns}": product(one, inner=n % 2 == 0) for n, one in enumerate((*TILES, FLAT))},
    **{f"mma {one.rows}x{one.columns}": product(one, inner=n % 2 == 0) for n, one in enumerate((*MMA_TILES, FLAT_MMA))},
    "vector f32": vector(F32, inner=False),
    "vector f16": vector(F16, inner=True),
    "attention f32": plan_for(F32, 64, 64, 4, tile=LARGE, expression=masked(F32)),
    "attention f32 128": plan_for(F32, 128, 128, 4, tile=LARGE),
    "attention f16": replace(mma_plan(F16, 64, 64, masked(F16), warps=4), keys=MMA_KEYS),
    "attention f16 128": replace(mma_plan(F16, 128, 128, warps=4), keys=MMA_KEYS),
}

TOLD_APART = [one for one in ARCHS if one.name in {"sm_80", "sm_89", "sm_90a", "sm_100a"}]

REGISTERS = {
    "tile 128x128": 136,
    "tile 128x64": 96,
    "tile 64x64": 72,
    "tile 32x32": 48,
    "tile 16x64": 56,
    "mma 128x128": 136,
    "mma 128x64": 136,
    "mma 64x64": 104,
    "mma 32x64": 72,
    "mma 16x64": 64,
    "vector f32": 56,
    "vector f16": 72,
    "attention f32": 184,
    "attention f32 128": 255,
    "attention f16": 152,
    "attention f16 128": 192,
}
"""How many registers kernels have at most, on any architecture."""

USED = {
    "mma 128x128": {"mma.sync": 32, "cp.async": 16, "ldmatrix": 12},
    "mma 64x64": {"mma.sync": 32, "cp.async": 24, "ldmatrix": 16},
    "attention f16": {"mma.sync": 64, "cp.async": 20, "ldmatrix": 36},
}
"""How many instructions there are that products on tensor cores are made of."""


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", TOLD_APART, ids=lambda arch: arch.name)
@pytest.mark.parametrize("name", PLANS)
def test_kernels_have_registers_enough(name: str, arch: Arch) -> None:
    found = facts(written(PLANS[name], arch), arch)
    assert (found.spilled, found.stack) == (0, 0)
    assert found.registers <= REGISTERS[name]


@pytest.mark.parametrize("name", USED)
def test_tensor_cores_are_used(name: str) -> None:
    text = written(PLANS[name], ARCHS[0]).text
    found = Counter(re.findall(r"\b(mma\.sync|cp\.async(?=\.cg)|ldmatrix)\b", text))
    assert found == USED[name]


@pytest.mark.parametrize("name", [name for name in PLANS if name.startswith(("tile", "attention f32"))])
def test_products_of_f32_lose_no_digits(name: str) -> None:
    text = written(PLANS[name], ARCHS[0]).text
    assert "fma.rn.f32" in text
    assert not re.search(r"mma\.sync|\.ftz|approx", text)
