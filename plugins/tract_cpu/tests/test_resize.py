"""Resized tensors, plain and in blocks of channels, on every instruction set of this machine, against the meaning."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from test_blocks import Net, check
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import Isa

from tract_core.dims import Dim, symbol
from tract_core.errors import TractError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import (
    Coordinates,
    DynResize,
    NearestMode,
    Resize,
    Sampling,
    Scales,
    Sizes,
    TargetKind,
    dyn_reference,
    reference,
)

LINEAR, CUBIC, NEAREST = Interpolator.LINEAR, Interpolator.CUBIC, Interpolator.NEAREST
PLAIN = [one for one in Coordinates if one is not Coordinates.TF_CROP_AND_RESIZE]
FACTORS, FACTORS_OF_ONE = Scales((2.0, 0.4)), Scales((1.7,))
FACTS = ["2,3,5,7,f32", "N,3,H,W,f32"]


def run(op: Resize, isa: Isa, x: Any, fact: str) -> Any:
    model = TypedModel()
    source = model.add_source("x", parse_typed_fact(fact, model.symbols))
    model.set_outputs(model.wire_node("y", op, [source]))
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements), fact
    return plan.spawn().run([x])[0]


def same(found: Any, wanted: Any) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("coordinates", PLAIN, ids=lambda one: one.value)
@pytest.mark.parametrize("mode", [LINEAR, *NearestMode], ids=lambda one: one.value)
def test_every_way_to_choose_places(isa: Isa, coordinates: Coordinates, mode: Any) -> None:
    """Whether the tables are constants or filled in the run, they say the same."""
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype("f4")
    nearest = mode if mode is not LINEAR else NearestMode.FLOOR
    sampling = Sampling(LINEAR if mode is LINEAR else NEAREST, coordinates, nearest)
    sizes: list[tuple[Dim, ...]] = [(10, 21), (3, 4), (1, 7), (5, 1)]
    targets = [*map(Sizes, sizes), *map(Scales, [(2.0, 0.5), (1.0, 3.0), (1 / 3, 1.7)])]
    for target in targets:
        op = Resize((2, 3), target, sampling)
        wanted = reference(op, x)
        for fact in FACTS:
            same(run(op, isa, x, fact), wanted)


@pytest.mark.parametrize("axes", [(0,), (1, 2), (3, 1), (0, 1, 2, 3)], ids=str)
@pytest.mark.parametrize("mode", [LINEAR, NEAREST], ids=lambda one: one.value)
def test_any_axes(isa: Isa, axes: tuple[int, ...], mode: Interpolator) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 37)).astype("f4")
    op = Resize(axes, Scales((2.0, 1.5, 3.0, 0.5)[: len(axes)]), Sampling(mode))
    for fact in ("2,3,5,37,f32", "A,B,C,D,f32"):
        same(run(op, isa, x, fact), reference(op, x))


@pytest.mark.parametrize("dtype", ["u1", "i8", "?", "f2", "f8"])
def test_the_nearest_element_of_any_type(isa: Isa, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 100, (2, 5, 3)).astype(dtype)
    op = Resize((1,), Scales((2.0,)), Sampling(NEAREST))
    short = {"u1": "u8", "i8": "i64", "?": "bool", "f2": "f16", "f8": "f64"}[dtype]
    np.testing.assert_array_equal(run(op, isa, x, f"2,5,3,{short}"), reference(op, x))


WIDE = [
    Sampling(CUBIC),
    Sampling(LINEAR, antialias=True),
    Sampling(CUBIC, cubic_coeff_a=-0.5, exclude_outside=True),
    Sampling(CUBIC, Coordinates.ALIGN_CORNERS, antialias=True, exclude_outside=True),
]


@pytest.mark.parametrize("sampling", WIDE, ids=["cubic", "antialias", "cut", "both"])
def test_kernels_that_are_wide(isa: Isa, sampling: Sampling) -> None:
    """Axes that shrink, grow, stay or have one element, whether their sizes are known or not."""
    x = np.random.default_rng(0).standard_normal((2, 8, 7)).astype("f4")
    x[0, 2, 3] = np.inf
    close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    sizes = [(3, 11), (8, 7), (1, 2), (4, 0)]
    for fact in ("2,8,7,f32", "N,H,W,f32"):
        ops = [Resize((1, 2), target, sampling) for target in (*map(Sizes, sizes[: 4 if "H" in fact else 2]), FACTORS)]
        for op in ops:
            with np.errstate(invalid="ignore"):
                close(run(op, isa, x, fact), reference(op, x))
    doubled = Resize((1, 2), Sizes((symbol("H") * 2, symbol("W") // 2)), sampling)
    close(run(doubled, isa, x[1:], "1,H,W,f32"), reference(replace(doubled, target=Sizes((16, 3))), x[1:]))


@pytest.mark.parametrize("mode", [LINEAR, NEAREST], ids=lambda one: one.value)
def test_crops(isa: Isa, mode: Interpolator) -> None:
    """What lies outside of the input is a number that was given, where one axis alone is outside too."""
    x = np.random.default_rng(0).standard_normal((2, 8, 7, 3)).astype("f4")
    crop = Sampling(mode, Coordinates.TF_CROP_AND_RESIZE, extrapolation_value=-7.5, roi=((0.25, 1.5), (-0.1, 0.9)))
    for target in (Sizes((4, 7)), Sizes((1, 9)), Sizes((8, 0))):
        for fact in ("2,8,7,3,f32", "N,H,W,3,f32"):
            op = Resize((1, 2), target, crop)
            same(run(op, isa, x, fact), reference(op, x))
    exact = Resize((1,), Sizes((5,)), replace(crop, roi=((0.123456789, 0.9),)))
    same(run(exact, isa, x, "N,8,7,3,f32"), reference(exact, x))


@pytest.mark.parametrize("dtype", ["u1", "i8"])
def test_integers_are_rounded_and_stop_at_the_ends_of_their_type(isa: Isa, dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = np.random.default_rng(0).choice(np.array([ends.min, ends.max, 3], dtype), (2, 9, 5))
    for fact in ("2,9,5", "A,B,C"):
        op = Resize((1,), FACTORS_OF_ONE, Sampling(CUBIC))
        np.testing.assert_array_equal(run(op, isa, x, f"{fact},{dtype[0]}{8 * x.itemsize}"), reference(op, x))


def test_an_axis_that_turns_out_to_stay_is_copied(isa: Isa) -> None:
    x = np.array([[1, np.inf, -0.0, np.nan, 2, -np.inf]], "f4")
    op = Resize((1,), Sizes((6,)), Sampling(LINEAR))
    np.testing.assert_array_equal(run(op, isa, x, "1,S,f32").view("i4"), x.view("i4"))


def test_sizes_of_nothing_and_of_one(isa: Isa) -> None:
    op = Resize((1,), Scales((2.0,)), Sampling(LINEAR))
    for size in (0, 1, 2):
        x = np.random.default_rng(0).standard_normal((2, size, 4)).astype("f4")
        same(run(op, isa, x, "N,S,4,f32"), reference(op, x))


def test_factors_that_are_no_fractions_of_small_numbers(isa: Isa) -> None:
    """What 64 bits do not hold is left to the host."""
    for factor in (1e-30, 1 / 3000.7):
        model = TypedModel()
        source = model.add_source("x", parse_typed_fact("N,W,f32", model.symbols))
        op = Resize((1,), Scales((factor,)), Sampling(LINEAR))
        model.set_outputs(model.wire_node("y", op, [source]))
        x = np.random.default_rng(0).standard_normal((2, 7000)).astype("f4")
        same(CpuPlan(model, isa).spawn().run([x])[0], reference(op, x))


def test_infinite_elements_are_blended_as_the_meaning_says(isa: Isa) -> None:
    x = np.random.default_rng(0).standard_normal((1, 4, 4)).astype("f4")
    x[0, 1, 2], x[0, 3, 0] = np.inf, np.nan
    op = Resize((1, 2), Scales((2.0, 2.0)), Sampling(LINEAR))
    with np.errstate(invalid="ignore"):
        same(run(op, isa, x, "1,S,T,f32"), reference(op, x))


@pytest.mark.parametrize("channels", [16, 21])
@pytest.mark.parametrize("mode", [LINEAR, NEAREST], ids=lambda one: one.value)
def test_blocks_stay_blocks_and_what_is_behind_is_computed_along(isa: Isa, channels: int, mode: Interpolator) -> None:
    net = Net(f"N,{channels},H,W,f32")
    resized = net.add(Resize((2, 3), Scales((2.0, 1.5)), Sampling(mode)), net.conv(net.x, channels))
    scaled = net.add(Add(), net.add(Mul(), resized, net.constant(1, channels, 1, 1)), net.constant(1, 1, 1, 1))
    net.model.set_outputs([net.conv(scaled, channels)])
    check(net, isa, (2, channels, 3, 5))
    check(net, isa, (1, channels, 1, 1))
    kernels = [step.kernel.name for step in CpuPlan(net.model, isa).program.steps if step.nodes]
    assert kernels == ["winograd", "resize", "winograd"]


@pytest.mark.parametrize("sampling", [Sampling(NEAREST), WIDE[-1]], ids=["nearest", "both"])
def test_sizes_and_factors_that_an_input_holds(isa: Isa, sampling: Sampling) -> None:
    x = np.random.default_rng(0).standard_normal((2, 8, 7)).astype("f4")
    for kind, values in [
        (TargetKind.SIZES, [[3, 11], [8, 7], [1, 0]]),
        (TargetKind.SCALES, [[2, 0.4], [1, 1 / 3], [0.01, 1]]),
    ]:
        model = TypedModel()
        short = "i64" if kind is TargetKind.SIZES else "f32"
        facts = [parse_typed_fact(one, model.symbols) for one in ("2,H,W,f32", f"2,{short}")]
        inputs = [model.add_source(name, fact) for name, fact in zip("xt", facts, strict=True)]
        op = DynResize((2, 1), kind, (symbol("P"), symbol("Q")), sampling)
        model.set_outputs(model.wire_node("y", op, inputs))
        plan = CpuPlan(model, isa)
        assert all(one.how != "numpy" for one in plan.explain().placements)
        state = plan.spawn()
        for one in values:
            target = np.array(one, "i8" if kind is TargetKind.SIZES else "f4")
            wanted = dyn_reference(op, x, target)
            np.testing.assert_allclose(state.run([x, target])[0], wanted, rtol=1e-5, atol=1e-5)
        if kind is TargetKind.SIZES:
            with pytest.raises(TractError, match="cannot be resized to"):
                state.run([x[:, :0], np.array([4, 2])])
