"""Symbols get values: in facts, in operators, in bodies, in what is asserted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core import Dim, Model
from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import TransformError
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.substitute import symbols_in
from tract_core.ops.binary import Add, Eq
from tract_core.ops.cast import Cast
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.set_symbols import SetSymbols

Maker = Callable[..., TypedModel]


def _facts(model: TypedModel) -> dict[str, str]:
    return {node.name: str(node.outputs[0].fact) for node in model.live_nodes()}


def test_facts_and_operators(flattening: Maker) -> None:
    model = flattening()
    result = SetSymbols({"B": 2}).apply(model)
    assert _facts(result)["doubled"] == "2*S,f32"
    assert symbols_in(result) == {"S"}
    assert result.symbols.names == ("S",)
    assert _facts(model)["doubled"] == "B*S,f32" or _facts(model)["doubled"] == "(B)*(S),f32"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = Model.from_typed(result.declutter()).into_runnable().run([x])
    assert found.to_numpy().tolist() == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"B": 2, "S": 3}, "6,f32"),
        ({"B": 1}, "S,f32"),
        ({"S": "2*T"}, "2*B*T,f32"),
        ({"B": "S", "S": "B"}, "B*S,f32"),
        ({"B": symbol("T")}, "S*T,f32"),
        ({"B": 0}, "0,f32"),
    ],
    ids=str,
)
def test_values(flattening: Maker, values: dict[str, Any], wanted: str) -> None:
    model = flattening()
    found = SetSymbols(values).apply(model)
    dims = found.outlet_fact(found.outputs[0]).shape
    expected = parse_typed_fact(wanted).shape
    assert dims.same(expected) is True


def test_substitution_is_simultaneous(network: Maker) -> None:
    result = SetSymbols({"B": "S", "S": "B"}).apply(network())
    assert _facts(result)["x"] == "S,B,3,f32"


def test_bodies_are_entered(loop: Maker) -> None:
    model = loop()
    result = SetSymbols({"B": 2, "T": 3}).apply(model)
    assert symbols_in(result) == frozenset()
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    start = np.zeros((1, 2), np.float32)
    for one in (result, result.clone().declutter(), model):
        (found,) = Model.from_typed(one).into_runnable().run([x, start])
        assert found.to_numpy().tolist() == [[0.5, 1], [2, 3], [4.5, 6]]


def test_the_same_model_comes_back_when_nothing_changes(network: Maker) -> None:
    model = network()
    assert model.substitute({"other": 3}) is model
    assert model.substitute({}) is model


def test_names_labels_and_properties_stay(network: Maker) -> None:
    model = network()
    model.set_label(model.outputs[1], "hidden")
    model.properties["p"] = np.array([1])
    result = SetSymbols({"B": 1}).apply(model)
    assert [node.name for node in result.nodes] == [node.name for node in model.nodes]
    assert [result.outlet_name(outlet) for outlet in result.outputs] == ["out", "hidden"]
    assert result.properties["p"].tolist() == [1]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"Z": 1}, "set_symbols: the model has no symbol Z; its symbols: B, S"),
        ({"B": -1}, "set_symbols: B is -1; symbols stand for sizes, which are 0 or more"),
        ({"B": 1.5}, "set_symbols: B is 1.5, wanted a number or an expression"),
        ({"B": True}, "set_symbols: B is True"),
        ({"B": None}, "set_symbols: B is None"),
    ],
)
def test_mistakes(network: Maker, values: dict[str, Any], problem: str) -> None:
    with pytest.raises(TransformError, match=problem):
        SetSymbols(values).apply(network())


def test_values_that_do_not_fit_name_the_node() -> None:
    model = TypedModel()
    a = model.add_source("a", parse_typed_fact("N,f32", model.symbols))
    b = model.add_source("b", parse_typed_fact("M,f32", model.symbols))
    model.set_outputs(model.wire_node("sum", Add(), [a, b]))
    with pytest.raises(TransformError, match="set_symbols with N=2, M=3 does not fit the model"):
        SetSymbols({"N": 2, "M": 3}).apply(model)


def test_assertions_are_kept_checked_and_translated(network: Maker) -> None:
    model = network()
    model.symbols.add_assertion("S>=4")
    model.symbols.add_assertion("B<=S")
    with pytest.raises(
        TransformError, match=r"S>=4 does not hold for S=3\n  hint: choose values that the model allows"
    ):
        SetSymbols({"S": 3}).apply(model)
    result = SetSymbols({"S": 8}).apply(model)
    assert result.symbols.as_text() == "B<=8"
    doubled = SetSymbols({"S": "2*T"}).apply(model)
    assert doubled.symbols.less_or_equal(symbol("B"), symbol("T") * 2) is True


def test_dims_of_the_public_api_are_values(network: Maker) -> None:
    from tract_core import SetSymbols as Spec

    model = Model.from_typed(network())
    model.transform(Spec({"B": Dim(5)}).value("S", Dim("T")))
    assert str(model.input_fact(0)) == "5,T,3,f32"


@pytest.mark.parametrize(("op", "value"), [(Cast(DatumType.I32), 300), (Cast(DatumType.U8), 44), (Eq(), True)])
def test_sizes_of_other_types_keep_their_type(op: TypedOp, value: int) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    size = model.add_const("size", list(model.outlet_fact(x).shape))
    inputs = [size, model.add_const("other", [300])][: 2 if isinstance(op, Eq) else 1]
    model.set_outputs(model.wire_node("out", op, inputs))
    kind = model.outlet_fact(model.outputs[0]).datum_type
    result = SetSymbols({"S": 300}).apply(model).declutter()
    assert result.outlet_fact(result.outputs[0]).datum_type == kind
    for each in (model, result):
        (found,) = TypedSimplePlan(each).run([np.zeros(300, np.float32)])
        assert (found.dtype, found.tolist()) == (kind.numpy, [value])
