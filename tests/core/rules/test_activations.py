from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Div, Max, Min, Mul, Pow
from tract_core.ops.elementwise import Erf, Sigmoid, Tanh
from tract_core.ops.wiring import wire_binary, wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

Build = Callable[[TypedModel, OutletId], OutletId]


def _number(model: TypedModel, value: float) -> OutletId:
    return model.add_const("number", np.float32(value))


def _binary(model: TypedModel, op: type, a: OutletId | float, b: OutletId | float) -> OutletId:
    left, right = (_number(model, one) if isinstance(one, float) else one for one in (a, b))
    return wire_binary(model, op.__name__, op(), left, right)


def _erf_gate(model: TypedModel, x: OutletId) -> OutletId:
    return _binary(model, Add, 1.0, wire_one(model, "erf", Erf(), _binary(model, Div, x, math.sqrt(2))))


def _gelu_torch(model: TypedModel, x: OutletId) -> OutletId:
    return _binary(model, Mul, _binary(model, Mul, x, _erf_gate(model, x)), 0.5)


def _gelu_half_first(model: TypedModel, x: OutletId) -> OutletId:
    return _binary(model, Mul, _binary(model, Mul, 0.5, x), _erf_gate(model, x))


def _gelu_scaled(model: TypedModel, x: OutletId) -> OutletId:
    return _binary(model, Mul, x, _erf_gate(model, x))


def _tanh_gate(model: TypedModel, inside: OutletId) -> OutletId:
    return _binary(model, Add, wire_one(model, "tanh", Tanh(), inside), 1.0)


def _gelu_new(model: TypedModel, x: OutletId) -> OutletId:
    cube = _binary(model, Mul, _binary(model, Pow, x, 3.0), 0.044715)
    inside = _binary(model, Mul, _binary(model, Add, x, cube), math.sqrt(2 / math.pi))
    return _binary(model, Mul, _binary(model, Mul, x, 0.5), _tanh_gate(model, inside))


def _gelu_fast(model: TypedModel, x: OutletId) -> OutletId:
    squared = _binary(model, Mul, _binary(model, Mul, x, 0.044715), x)
    inside = _binary(model, Mul, _binary(model, Mul, x, 0.7978846), _binary(model, Add, 1.0, squared))
    return _binary(model, Mul, _binary(model, Mul, x, 0.5), _tanh_gate(model, inside))


def _silu(model: TypedModel, x: OutletId) -> OutletId:
    return _binary(model, Mul, wire_one(model, "sigmoid", Sigmoid(), x), x)


def _hard_swish(model: TypedModel, x: OutletId) -> OutletId:
    clipped = _binary(model, Min, _binary(model, Max, _binary(model, Add, x, 3.0), 0.0), 6.0)
    return _binary(model, Div, _binary(model, Mul, x, clipped), 6.0)


def _hard_swish_torch(model: TypedModel, x: OutletId) -> OutletId:
    ramp = _binary(model, Add, _binary(model, Mul, x, 1 / 6), 0.5)
    return _binary(model, Mul, x, _binary(model, Max, _binary(model, Min, ramp, 1.0), 0.0))


FOUND: list[tuple[Build, list[str]]] = [
    (_gelu_torch, ["GeluExact"]),
    (_gelu_half_first, ["GeluExact"]),
    (_gelu_scaled, ["GeluExact", "Mul"]),
    (_gelu_new, ["GeluApproximate"]),
    (_gelu_fast, ["GeluApproximate"]),
    (_silu, ["Silu"]),
]


@pytest.mark.parametrize(("build", "wanted"), FOUND, ids=[build.__name__ for build, _ in FOUND])
def test_spelled_out_activations_are_recognised(build: Build, wanted: list[str]) -> None:
    model, (x,) = sources("B,64,f32")
    result = build(model, x)
    model.set_outputs([result])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == wanted
    assert simple.outlet_name(simple.outputs[0]) == model.outlet_name(result)


def test_in_half_precision_every_operator_of_the_spelled_form_rounds() -> None:
    model, (x,) = sources("B,64,f16")
    model.set_outputs([wire_one(model, "out", Mul(), x, wire_one(model, "sigmoid", Sigmoid(), x))])
    assert operators(checked_declutter(model, {"B": 2})) == ["Sigmoid", "Mul"]


@pytest.mark.parametrize(("root", "found"), [(math.sqrt(2), True), (float(np.float32(math.sqrt(2))), False)])
def test_constants_in_double_precision_must_be_as_exact(root: float, found: bool) -> None:
    model, (x,) = sources("B,64,f64")
    inner = wire_binary(model, "inner", Div(), x, model.add_const("root", np.array(root)))
    gate = wire_binary(model, "gate", Add(), wire_one(model, "erf", Erf(), inner), model.add_const("one", 1.0))
    half = wire_binary(model, "half", Mul(), x, model.add_const("number", 0.5))
    model.set_outputs([wire_one(model, "out", Mul(), half, gate)])
    assert (operators(checked_declutter(model, {"B": 2})) == ["GeluExact"]) is found


def _other_argument(model: TypedModel, x: OutletId) -> OutletId:
    return _binary(model, Mul, wire_one(model, "sigmoid", Sigmoid(), _binary(model, Mul, x, 1.7)), x)


def _other_slope(model: TypedModel, x: OutletId) -> OutletId:
    gate = _binary(model, Add, 1.0, wire_one(model, "erf", Erf(), _binary(model, Div, x, 1.5)))
    return _binary(model, Mul, _binary(model, Mul, x, gate), 0.5)


def _other_limits(model: TypedModel, x: OutletId) -> OutletId:
    clipped = _binary(model, Min, _binary(model, Max, _binary(model, Add, x, 3.0), 0.0), 5.0)
    return _binary(model, Mul, x, clipped)


def _rounded_slope(model: TypedModel, x: OutletId) -> OutletId:
    gate = _binary(model, Add, 1.0, wire_one(model, "erf", Erf(), _binary(model, Div, x, 1.4142)))
    return _binary(model, Mul, _binary(model, Mul, x, gate), 0.5)


def _rounded_cube(model: TypedModel, x: OutletId) -> OutletId:
    cube = _binary(model, Mul, _binary(model, Pow, x, 3.0), 0.04471)
    inside = _binary(model, Mul, _binary(model, Add, x, cube), math.sqrt(2 / math.pi))
    return _binary(model, Mul, _binary(model, Mul, x, 0.5), _tanh_gate(model, inside))


@pytest.mark.parametrize(
    "build",
    [_other_argument, _other_slope, _other_limits, _rounded_slope, _rounded_cube, _hard_swish, _hard_swish_torch],
)
def test_what_only_looks_alike_stays(build: Build) -> None:
    model, (x,) = sources("B,64,f32")
    model.set_outputs([build(model, x)])
    found = operators(checked_declutter(model, {"B": 2}))
    assert not {"GeluExact", "GeluApproximate", "Silu", "HardSwish"} & set(found)
