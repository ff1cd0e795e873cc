"""The one walk that wires a model anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Exp, Neg
from tract_core.ops.topk import Topk
from tract_core.runtime.plan import TypedSimplePlan


def example() -> TypedModel:
    """-(x + 1) and exp(x), of which a node that nothing needs hangs."""
    model = TypedModel()
    model.symbols.add("B")
    x = model.add_source("x", parse_typed_fact("B,f32"))
    one = model.add_const("one", np.ones(1, "f4"))
    (total,) = model.wire_node("total", Add(), [x, one])
    (result,) = model.wire_node("result", Neg(), [total])
    (other,) = model.wire_node("other", Exp(), [x])
    model.wire_node("unread", Exp(), [result])
    model.set_outputs([result, other])
    model.properties["made.by"] = np.array(["me"], object)
    return model


def test_a_model_wired_anew_node_by_node_is_equal() -> None:
    model = example()
    twin = empty_twin(model)
    place = {model.inputs[0]: twin.add_source("x", model.outlet_fact(model.inputs[0]))}
    translate(model, place, lambda node, inputs: twin.wire_node(node.name, node.op, inputs))
    twin.set_outputs(place[outlet] for outlet in model.outputs)
    assert twin == model
    assert [node.name for node in twin.nodes] == ["x", "one", "total", "result", "other"]
    assert twin.properties.keys() == model.properties.keys()


def test_what_has_a_place_is_not_wired_and_what_becomes_nothing_takes_those_behind_with_it() -> None:
    model, seen = example(), list[str]()

    def wire(node: TypedNode, inputs: Sequence[str]) -> Sequence[str] | None:
        seen.append(node.name)
        return None if node.name == "total" else [f"{node.name}({','.join(inputs)})"]

    place = {model.inputs[0]: "x"}
    translate(model, place, wire)
    assert seen == ["one", "total", "other"]
    assert list(place.values()) == ["x", "one()", "other(x)"]


def test_targets_choose_what_is_wired() -> None:
    model = example()
    place = {model.inputs[0]: "x"}
    translate(model, place, lambda node, _: [node.name], [model.outputs[1]])
    assert list(place.values()) == ["x", "other"]


def test_every_output_of_a_node_wants_a_place() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4,f32"))
    count = model.add_const("count", np.array(2))
    outlets = model.wire_node("best", Topk(0, True, 2), [x, count])
    model.set_outputs(outlets)
    place = {x: 0}
    with pytest.raises(ValueError, match="zip"):
        translate(model, place, lambda _node, _inputs: [1])


def test_a_twin_changes_on_its_own() -> None:
    model = example()
    twin = empty_twin(model)
    twin.symbols.add("S")
    twin.properties.clear()
    assert "S" not in model.symbols
    assert "made.by" in model.properties


def test_another_operator_in_each_place() -> None:
    model = example()
    twin = empty_twin(model)
    place: dict[OutletId, OutletId] = {}
    place[model.inputs[0]] = twin.add_source("x", model.outlet_fact(model.inputs[0]))
    swapped = {Add: Mul()}
    translate(model, place, lambda node, found: twin.wire_node(node.name, swapped.get(type(node.op), node.op), found))
    twin.set_outputs([place[model.outputs[0]]])
    (found,) = TypedSimplePlan(twin).run([np.array([2.0, -3.0], "f4")])
    np.testing.assert_array_equal(found, np.array([-2.0, 3.0], "f4"))
