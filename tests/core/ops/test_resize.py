"""Resizing: against ONNX Runtime, and its facts, static forms, costs, axes and refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, InputError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import (
    AspectPolicy,
    AxisScale,
    Coordinates,
    DynResize,
    NearestMode,
    Resize,
    Sampling,
    Scales,
    Sizes,
    TargetKind,
    nearby_fraction,
    places_of,
    scaled,
    wire_resize,
)
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST
from tract_core.runtime.plan import TypedSimplePlan

REGIONS = ((0.125, 0.75), (-0.25, 1.125))
FACTORS = [(2.0, 3.0), (0.6, 0.4), (0.7, 1.5), (1 / 3, 2.7)]
VARIANTS: dict[Interpolator, list[dict[str, Any]]] = {
    Interpolator.NEAREST: [{"nearest_mode": mode.value} for mode in NearestMode],
    Interpolator.LINEAR: [{}, {"antialias": 1}],
    Interpolator.CUBIC: [{}, {"exclude_outside": 1}, {"cubic_coeff_a": -0.5}, {"antialias": 1}],
}
CHOICES = [
    (interpolator, coordinates, variant)
    for interpolator, coordinates in product(Interpolator, Coordinates)
    for variant in VARIANTS[interpolator]
    if coordinates is not Coordinates.TF_HALF_PIXEL_FOR_NN  # of opset 10; ONNX Runtime does not take it in later ones
]


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize(("interpolator", "coordinates", "variant"), CHOICES, ids=str)
def test_agrees_with_onnx_runtime(
    run_op: Any, run_onnx: Any, interpolator: Any, coordinates: Any, variant: Any, *, factors: Any
) -> None:
    x = np.random.default_rng(3).standard_normal((1, 2, 5, 7)).astype(np.float32)
    sizes = tuple(max(1, int(size * factor + 1e-6)) for size, factor in zip(x.shape[2:], factors, strict=True))
    crop = coordinates is Coordinates.TF_CROP_AND_RESIZE
    sampling = Sampling(
        interpolator,
        coordinates,
        NearestMode(variant.get("nearest_mode", "round_prefer_floor")),
        variant.get("cubic_coeff_a", -0.75),
        "exclude_outside" in variant,
        "antialias" in variant,
        3.5,
        REGIONS if crop else (),
    )
    roi = np.array([0, 0, *(r[0] for r in REGIONS), 1, 1, *(r[1] for r in REGIONS)], np.float32)
    how = {"mode": interpolator.value, "coordinate_transformation_mode": coordinates.value, "extrapolation_value": 3.5}
    given = {
        Scales(factors): [x, roi, np.array([1, 1, *factors], np.float32)],
        Sizes(sizes): [x, roi, None, np.array([1, 2, *sizes], np.int64)],
    }
    if coordinates is Coordinates.ALIGN_CORNERS and any(f * n % 1 for f, n in zip(factors, (5, 7), strict=True)):
        del given[Scales(factors)]  # ONNX Runtime drops the part of an element here, the standard's own code does not
    for target, arrays in given.items():
        (found,) = run_op(Resize((2, 3), target, sampling), [x])
        (wanted,) = run_onnx("Resize", arrays, opset=19, **how, **variant)
        assert found.shape == wanted.shape
        if interpolator is Interpolator.NEAREST and factors != (2.0, 3.0):
            sure = _away_from_ties(target, sampling, found.shape)
            found, wanted = found[sure], wanted[sure]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)


def _away_from_ties(target: Any, sampling: Sampling, shape: Any) -> np.ndarray[Any, Any]:
    """Where the neighbour does not depend on how f32 arithmetic rounds: whole numbers and halves are in doubt."""
    sure = np.ones(shape, dtype=bool)
    factors = target.factors((5, 7), shape[2:])
    for axis, size in enumerate((5, 7)):
        scale = AxisScale(size, shape[2 + axis], factors[axis], sampling.region(axis))
        doubled = 2 * places_of(sampling.coordinates, scale)
        kept = np.abs(doubled - np.rint(doubled)) > 1e-4
        sure &= kept.reshape(-1, 1) if axis == 0 else kept
    return sure


def test_aligned_corners_count_the_part_of_an_element_that_a_factor_gives(run_op: Any) -> None:
    """0.6 * 4 is 2.4, so that element 1 of the output stands for 3 / 1.4 = 2 1/7; from the standard's examples."""
    op = Resize((0,), Scales((0.6,)), Sampling(Interpolator.LINEAR, Coordinates.ALIGN_CORNERS))
    (found,) = run_op(op, [np.array([1, 2, 3, 4], np.float32)])
    np.testing.assert_allclose(found, [1, 3 + 1 / 7], rtol=1e-6)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_policies_agree_with_onnx_runtime(run_op: Any, run_onnx: Any, policy: str) -> None:
    x = np.random.default_rng(3).standard_normal((1, 1, 6, 9)).astype(np.float32)
    op = Resize((2, 3), Sizes((8, 7), AspectPolicy(policy)), Sampling(Interpolator.LINEAR))
    (found,) = run_op(op, [x])
    arrays = [x, None, None, np.array([8, 7], np.int64)]
    (wanted,) = run_onnx("Resize", arrays, opset=19, mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(2.0, "2*S"), (0.5, "S/2"), (1.5, "3*S/2"), (np.float32(1 / 3), "S/3"), (np.float32(0.7), "7*S/10")],
)
def test_symbolic_sizes_print_plainly(factor: float, expected: str) -> None:
    assert str(scaled(symbol("S"), factor)).replace("(", "").replace(")", "") == expected


def test_a_factor_that_no_simple_fraction_stands_for_is_taken_as_it_is() -> None:
    value = float(np.float32(0.29341877))
    assert float(nearby_fraction(value)) == value


def test_known_targets_give_the_static_form() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,H,W,f32", model.symbols))
    target = model.add_const("target", [symbol("H") * 2, 7])
    outlet = wire_resize(model, "resize", [x, target], lambda sizes: DynResize((2, 3), TargetKind.SIZES, sizes))
    assert str(model.outlet_fact(outlet)) == "B,3,2*H,7,f32"
    assert model.nodes[outlet.node].op == Resize((2, 3), Sizes((symbol("H") * 2, 7)))


def test_unknown_targets_give_fresh_symbols() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,H,W,f32", model.symbols))
    target = model.add_source("target", parse_typed_fact("2,f32"))
    outlet = wire_resize(model, "resize", [x, target], lambda sizes: DynResize((2, 3), TargetKind.SCALES, sizes))
    assert str(model.outlet_fact(outlet)) == "B,3,resize_2,resize_3,f32"


def test_a_policy_on_symbolic_sizes_stays_dynamic() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,H,W,f32", model.symbols))
    target = model.add_const("target", np.array([8, 7]))

    def op(sizes: Any) -> DynResize:
        return DynResize((2, 3), TargetKind.SIZES, sizes, policy=AspectPolicy.NOT_LARGER)

    outlet = wire_resize(model, "resize", [x, target], op)
    assert isinstance(model.nodes[outlet.node].op, DynResize)


def test_cost_and_axes() -> None:
    op = Resize((2,), Scales((2.0,)), Sampling(Interpolator.LINEAR))
    inputs = [parse_typed_fact("B,3,H,f32")]
    outputs = op.output_facts(inputs)
    cost = default_registry()[COST][Resize](op, inputs, outputs)
    assert {kind: str(count) for kind, count in cost.items()} == {"FMA(F32)": "12*B*H"}
    axes = default_registry()[AXES][Resize](op, inputs, outputs)
    assert axes.inputs[0][:2] == axes.outputs[0][:2]
    assert axes.inputs[0][2] != axes.outputs[0][2]


LINEAR = Sampling(Interpolator.LINEAR)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (Resize((3,), Scales((2.0,))), ["1,2,9,f32"], "Resize: axis 3 is outside a tensor of rank 3"),
        (Resize((2, 2), Scales((2.0, 2.0))), ["1,2,9,f32"], r"an axis occurs twice in \[2, 2\]"),
        (Resize((1, 2), Scales((2.0,))), ["1,2,9,f32"], r"1 targets for the axes \[1, 2\]"),
        (Resize((2,), Scales((0.0,))), ["1,2,9,f32"], r"factors \[0.0\]; positive ones are wanted"),
        (Resize((2,), Scales((2.0,)), LINEAR), ["1,2,9,bool"], "1,2,9,bool cannot be interpolated"),
        (
            Resize((2,), Scales((2.0,)), Sampling(antialias=True)),
            ["1,2,9,f32"],
            "nearest element cannot be antialiased",
        ),
        (Resize((2,), Scales((2.0,)), Sampling(roi=REGIONS)), ["1,2,9,f32"], r"2 regions for the axes \[2\]"),
        (
            Resize((2,), Sizes((8,), AspectPolicy.NOT_LARGER)),
            ["1,2,S,f32"],
            r"not_larger needs sizes that are numbers, found \[S\] to \[8\]",
        ),
        (DynResize((2,), TargetKind.SIZES, (7,)), ["1,2,9,f32", "1,f32"], "sizes cannot be 1,f32"),
        (DynResize((2,), TargetKind.SIZES, (7,)), ["1,2,9,f32", "3,i64"], r"3,i64 was given for the axes \[2\]"),
        (DynResize((2,), TargetKind.SIZES, (7,)), ["1,2,9,f32"], "DynResize takes 2 inputs, 1 were given"),
    ],
    ids=str,
)
def test_refusals(op: Any, inputs: list[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(text) for text in inputs])


def test_a_size_below_zero_is_refused_in_the_run() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    model.set_outputs(model.wire_node("out", Resize((0,), Sizes((symbol("S") - 2,))), [x]))
    plan = TypedSimplePlan(model)
    assert plan.run([np.zeros(2, np.float32)])[0].shape == (0,)
    with pytest.raises(InputError, match=r"node 'out' \(Resize\): size S-2 must be 0 or more; S-2 is -1"):
        plan.run([np.zeros(1, np.float32)])
