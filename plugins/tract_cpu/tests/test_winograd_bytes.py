"""Convolutions of bytes by Winograd's method, in integers of 16 bits: exact on every instruction set that has it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from test_dots import SHORT, values
from test_tile_conv import conv
from test_widened import assert_exact, conv_of_differences
from tract_cpu.ahead.targets import SIMD128
from tract_cpu.group import winograd
from tract_cpu.kernels.winograd import WinogradPlan
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import ISAS, Isa, portable
from tract_llvm.language.types import I16

from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv, reference
from tract_core.ops.pool_spec import DataFormat

SETS: Final = [portable(one) for one in (*(one for one in ISAS if one.name in {"sse2", "avx2"}), SIMD128)]
BYTES: Final = [("u1", "i1"), ("i1", "u1"), ("i1", "i1"), ("u1", "u1")]
SIZES: Final = [(1, 4), (2, 2), (3, 3), (5, 7), (8, 9), (13, 4)]


def wanted(model: TypedModel, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    op = next(node.op for node in model.nodes if isinstance(node.op, Conv))
    return reference(op, x.astype("i8"), weights.astype("i8"), bias.astype("i8"))


def kernels(plan: CpuPlan) -> list[WinogradPlan]:
    return [step.kernel for step in plan.steps if isinstance(step.kernel, WinogradPlan)]


@pytest.fixture(params=SETS, ids=lambda one: one.name)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Isa:
    """Also where direct sums are less work."""
    monkeypatch.setattr(winograd, "GAIN", 0)
    return request.param


@pytest.mark.parametrize("size", [*map(str, SIZES), "symbols"])
@pytest.mark.parametrize(("left", "right"), BYTES, ids=str)
def test_sums_are_exact_at_the_ends_of_the_types(isa: Isa, left: str, right: str, size: str) -> None:
    weights, bias = values(right, (33, 24, 3, 3), 0), values("i4", (33,), 1) >> 4
    sizes = SIZES if size == "symbols" else [one for one in SIZES if str(one) == size]
    fact = "H,W" if size == "symbols" else f"{sizes[0][0]},{sizes[0][1]}"
    model = conv(f"B,24,{fact},{SHORT[left]}", weights, bias)
    plan = CpuPlan(model, isa)
    assert [(one.tile, one.element, one.factors) for one in kernels(plan)] == [((2, 2), I16, I16)]
    for batch in (1, 2, 0):
        for height, width in sizes:
            x = values(left, (batch, 24, height, width), batch)
            np.testing.assert_array_equal(plan.spawn().run([x])[0], wanted(model, x, weights, bias).astype("i4"))


def test_channels_may_lie_last(isa: Isa) -> None:
    weights, bias = values("i1", (32, 16, 3, 3), 0), np.zeros(32, "i4")
    model = conv("1,9,7,16,u8", weights, bias, layout=DataFormat.NHWC)
    plan, x = CpuPlan(model, isa), values("u1", (1, 9, 7, 16), 1)
    assert kernels(plan)
    np.testing.assert_array_equal(plan.spawn().run([x])[0], wanted(model, x, weights, bias).astype("i4"))


@pytest.mark.parametrize(("window", "tile"), [((3,), (2,)), ((1, 3), (1, 2)), ((3, 3, 3), (2, 2, 2))], ids=str)
def test_windows_of_other_axes_are_exact(isa: Isa, window: tuple[int, ...], tile: tuple[int, ...]) -> None:
    weights, bias = values("i1", (16, 16, *window), 0), np.arange(16, dtype="i4")
    model = conv(",".join(["2,16", *["5"] * len(window), "u8"]), weights, bias)
    plan = CpuPlan(model, isa)
    assert [one.tile for one in kernels(plan)] == [tile]
    x = values("u1", (2, 16, *[5] * len(window)), 1)
    np.testing.assert_array_equal(plan.spawn().run([x])[0], wanted(model, x, weights, bias).astype("i4"))


@pytest.mark.parametrize(("inputs", "fits"), [(1840, True), (1848, False)])
def test_as_many_channels_are_summed_as_the_sums_hold(isa: Isa, inputs: int, fits: bool) -> None:
    """All of the same sign, and as large as can be: four times the sum is just below 2**31, or above."""
    weights, bias = np.full((8, inputs, 3, 3), 127, "i1"), np.zeros(8, "i4")
    model = conv(f"1,{inputs},4,4,u8", weights, bias)
    plan = CpuPlan(model, isa)
    assert bool(kernels(plan)) is fits
    for number in (255, 1):
        x = np.full((1, inputs, 4, 4), number, "u1")
        np.testing.assert_array_equal(plan.spawn().run([x])[0], wanted(model, x, weights, bias).astype("i4"))


@pytest.mark.parametrize("one", [portable(one) for one in (*ISAS, SIMD128)], ids=lambda one: one.name)
def test_differences_of_bytes_are_exact(one: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "GAIN", 0)
    weights, bias = values("i1", (16, 16, 3, 3), 0), np.zeros(16, "i4")
    model = conv_of_differences("1,16,6,7,u8", weights, bias)
    plan = CpuPlan(model, one)
    assert bool(kernels(plan)) == any(dot.left == dot.right == I16.name for dot in one.dots)
    assert_exact(plan, model, values("u1", (1, 16, 6, 7), 1), weights, bias)


@pytest.mark.parametrize(("fact", "channels"), [("1,20,8,8,u8", 20), ("1,16,8,8,i16", 16), ("1,16,8,8,i32", 16)])
def test_others_are_summed_directly(isa: Isa, fact: str, channels: int) -> None:
    """Blocks that are not whole, and more than bytes."""
    weights, bias = values("i1", (16, channels, 3, 3), 0), np.zeros(16, "i4")
    plan = CpuPlan(conv(fact, weights, bias), isa)
    is_whole = channels % isa.lanes(32) == 0
    assert bool(kernels(plan)) == (is_whole and fact.endswith("u8"))


def test_bits_do_not_depend_on_threads(isa: Isa) -> None:
    weights, bias = values("i1", (64, 32, 3, 3), 0), values("i4", (64,), 1) >> 4
    model, x = conv("2,32,30,31,u8", weights, bias), values("u1", (2, 32, 30, 31), 2)
    found = [CpuPlan(model, isa, threads).spawn().run([x])[0] for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0], wanted(model, x, weights, bias).astype("i4"))
