"""Faults planted in the product of halves on tensor cores: an error, or a wrong result, in every order."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from tract_cuda.kernels.products.mma import MmaTile
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Lowering, Target
from tract_cuda.products.product import Product, add_tiles
from tract_cuda.program import Launch
from tract_cuda.ptx import Ptx, written
from tract_cuda.testing.emulator import EmulationError, Emulator, Range, aligned
from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import F16, F32
from tract_llvm.program.storages import Address

from tract_core.dims import evaluate
from tract_core.model.typed import TypedModel

ORDERS = (0, 1, 7)
SM_80 = arch_named("sm_80")
assert SM_80 is not None
ROWS, DEPTH, COLUMNS = 33, 136, 40
TILE = MmaTile(32, 32, 32, 3, 1, 2)
RNG = np.random.default_rng(0)
LEFT, RIGHT = (RNG.integers(-4, 5, shape).astype("f2") for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS)))


@cache
def product() -> tuple[Launch, Ptx]:
    """The one launch, and its kernel."""
    assert SM_80 is not None
    lowering = Lowering(TypedModel(), Target(SM_80))
    left, right, result = (
        lowering.scratch(F16, shape) for shape in ((1, ROWS, DEPTH), (1, DEPTH, COLUMNS), (1, ROWS, COLUMNS))
    )
    add_tiles(lowering, Product(left, right, (), result, F32, Expression((F16,))), (TILE, 1), ())
    (launch,) = (step for step in lowering.program().steps if isinstance(step, Launch))
    return launch, written(launch.kernel, SM_80)


def verdict(text: str, order: int, *, shared: int = 0) -> str:
    """What is found."""
    launch, ptx = product()
    arrays = [aligned(one) for one in (LEFT, RIGHT, np.full((ROWS, COLUMNS), np.nan, "f2"))]
    places = {one.storage: None for one in launch.arguments if isinstance(one, Address)}
    held = dict(zip(sorted(places, key=lambda one: one.number), arrays, strict=True))
    passed = [
        held[one.storage].ctypes.data + evaluate(one.offset, {}) if isinstance(one, Address) else evaluate(one, {})
        for one in launch.arguments
    ]
    memory = [Range(one.ctypes.data, one.nbytes) for one in arrays]
    grid = [evaluate(size, {}) for size in launch.grid]
    try:
        Emulator(text).launch(
            ptx.name, grid, (ptx.threads,), ptx.shared_bytes + shared, passed, memory=memory, order=order
        )
    except EmulationError as error:
        return str(error)
    wanted = (LEFT.astype("f8") @ RIGHT.astype("f8")).astype("f2")
    return "" if (arrays[2] == wanted).all() else "wrong"


@pytest.mark.parametrize("order", range(20))
def test_the_product_is_right(order: int) -> None:
    assert not verdict(product()[1].text, order)


SYNC = r"bar\.sync\s+0;"
FAULTS = {
    "one group less is waited for": (r"(cp\.async\.wait_group\s+)1;", r"\g<1>2;", "on its way"),
    "nothing is waited for": (r"cp\.async\.wait_group\s+\d+;", "", "on its way"),
    "groups are never closed": (r"cp\.async\.commit_group;", "", "on its way|no barrier"),
    "no barriers": (SYNC, "", "with no barrier between|written by nobody|on its way"),
    "copies of whole pieces at the edges": (r"(cp\.async\.cg.*, 16), %r\d+;", r"\1;", "which no allocation has|wrong"),
    "copies of half a piece": (r"(cp\.async\.cg.*), 16, %r\d+;", r"\1, 8;", "'cp|not known|written by nobody|multiple"),
    "matrices not turned": (r"(ldmatrix.*)\.trans", r"\1", "wrong"),
    "matrices turned": (r"(ldmatrix[\w.]*x4)(\.shared)", r"\1.trans\2", "wrong"),
    "the pattern in memory": (r"xor\.b32", "or.b32", "wrong|written by nobody|no barrier|on its way|ends before"),
    "another type": (r"f32\.f16\.f16\.f32", "f32.bf16.bf16.f32", "wrong"),
    "registers that changed places": (r"(mma\.[\w.]+\s*\{[^}]*\},\s*\{)(%r\d+), (%r\d+),", r"\1\3, \2,", "wrong"),
    "one element beside": (r"(st\.global\.\w+\s+\[%rd\d+)\]", r"\1+2]", "wrong|which no allocation|multiple of"),
    "comparisons that let in one more": (r"setp\.lt\.s32", "setp.le.s32", "which no allocation has|wrong"),
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, order: int) -> None:
    pattern, replacement, message = FAULTS[fault]
    text, count = re.subn(pattern, replacement, product()[1].text)
    assert count
    found = verdict(text, order)
    assert re.search(message, found), found


BARRIERS = len(re.findall(SYNC, product()[1].text))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("number", range(BARRIERS))
def test_every_barrier_is_wanted(number: int, order: int) -> None:
    parts = re.split(SYNC, product()[1].text)
    kept = [*["bar.sync 0;"] * number, "", *["bar.sync 0;"] * (BARRIERS - number - 1), ""]
    text = "".join(part + sync for part, sync in zip(parts, kept, strict=True))
    assert re.search("with no barrier between|written by nobody|on its way", verdict(text, order))


@pytest.mark.parametrize("order", ORDERS)
def test_less_shared_memory_than_stages_want(order: int) -> None:
    assert "of shared memory, which ends before" in verdict(product()[1].text, order, shared=-2048)
