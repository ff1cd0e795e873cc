"""Transforms as users write them down."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core import DatumType, Dim, FloatPrecision, Model, Pulse, SetSymbols, TransformSpec
from tract_core.errors import PluginError, TractError, TransformError


@pytest.mark.parametrize(
    ("spec", "content"),
    [
        (SetSymbols(), {"name": "set_symbols", "values": {}}),
        (SetSymbols({"B": 1}).value("S", "2*T"), {"name": "set_symbols", "values": {"B": 1, "S": "2*T"}}),
        (SetSymbols({"B": Dim(4), "S": Dim("T")}), {"name": "set_symbols", "values": {"B": 4, "S": "T"}}),
        (Pulse(4), {"name": "pulse", "pulse": "4"}),
        (Pulse("P", symbol="S"), {"name": "pulse", "pulse": "P", "symbol": "S"}),
        (Pulse("P").symbol("T"), {"name": "pulse", "pulse": "P", "symbol": "T"}),
        (Pulse(8, past=128), {"name": "pulse", "pulse": "8", "past": 128}),
        (Pulse(8, symbol="T", past="all"), {"name": "pulse", "pulse": "8", "symbol": "T", "past": "all"}),
        (Pulse(8, past=np.int64(0)), {"name": "pulse", "pulse": "8", "past": 0}),
        (FloatPrecision("f32", DatumType.F16), {"name": "float_precision", "from": "f32", "to": "f16"}),
        (
            FloatPrecision(DatumType.F32, "bf16", include=["a"]).exclude(["b", "c"]),
            {"name": "float_precision", "from": "f32", "to": "bf16", "include": ["a"], "exclude": ["b", "c"]},
        ),
        (
            FloatPrecision("f32", "f16", exclude=("norm",)).include(["x"]),
            {"name": "float_precision", "from": "f32", "to": "f16", "include": ["x"], "exclude": ["norm"]},
        ),
    ],
)
def test_serialised(spec: TransformSpec, content: dict[str, Any]) -> None:
    assert json.loads(spec.to_json()) == content
    assert repr(spec).startswith(type(spec).__name__)


def test_setters_return_the_spec() -> None:
    spec = SetSymbols()
    assert spec.value("B", 1) is spec
    assert json.loads(spec.to_json())["values"] == {"B": 1}
    precision = FloatPrecision("f32", "f16")
    assert precision.include(["a"]) is precision
    assert precision.exclude(["b"]) is precision
    pulse = Pulse(1)
    assert pulse.symbol("S") is pulse


@pytest.mark.parametrize("kinds", [("i32", "f16"), ("f32", "bool"), ("f32", "nonsense"), (None, "f32"), (3.5, "f32")])
def test_precision_is_about_floats(kinds: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match=r"float_precision converts float types, .* is none") as caught:
        FloatPrecision(*kinds)
    assert isinstance(caught.value, TractError)


@pytest.mark.parametrize("value", [1.5, None, [1], True])
def test_values_are_sizes(value: Any) -> None:
    with pytest.raises(TransformError, match="the value of B is a"):
        SetSymbols({"B": value})


@pytest.mark.parametrize("past", ["some", 1.5, True, [1], np.array(1)])
def test_past_is_a_number_of_positions_or_all(past: Any) -> None:
    with pytest.raises(TransformError, match=r"past is .*, wanted a number of positions, 0 or more, or 'all'"):
        Pulse(8, past=past)


@pytest.mark.parametrize("pulse", ["8,past=all", "T=8", ""])
def test_what_a_flag_says_together_are_arguments_in_python(pulse: str) -> None:
    with pytest.raises(TransformError, match="which is no size") as caught:
        Pulse(pulse)
    assert caught.value.hint == "as in Pulse(8), or Pulse(8, symbol='T', past=128)"


def test_pulse_until_it_is_installed(affine: Callable[[], Model]) -> None:
    from tract_core.plugins import default_registry

    if "pulse" in default_registry().transforms():
        pytest.skip("it is installed")
    problem = (
        r"transform 'pulse' is not installed; installed transforms: .*set_symbols.*"
        r"\n  hint: it will come with tract-pulse, which is planned"
    )
    for way in (Pulse(4), "pulse", '{"name": "pulse", "pulse": "4"}'):
        with pytest.raises(PluginError, match=problem):
            affine().transform(way)


@pytest.mark.parametrize("values", [["B"], "B", 3])
def test_values_of_symbols_are_a_dictionary(values: Any) -> None:
    with pytest.raises(TransformError, match=f"values are a {type(values).__name__}, wanted a dictionary"):
        SetSymbols(values)


def test_values_of_symbols_may_be_numbers_of_numpy() -> None:
    assert SetSymbols({"B": np.int64(3)}).parameters() == {"values": {"B": 3}}


def test_one_pattern_is_not_taken_apart() -> None:
    assert FloatPrecision("f32", "f16", include="abc").parameters()["include"] == ["abc"]
    with pytest.raises(TransformError, match="by a list of texts, got 3"):
        FloatPrecision("f32", "f16", exclude=3)
