"""Models that are the same, and those that nearly are."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tract_core.errors import Unsupported
from tract_core.model import OutletId, TypedFact, TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.same import fingerprint, outline, same_model
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Exp
from tract_core.ops.submodel import SubmodelOp
from tract_core.testing.strategies import Grown, typed_models


def chain(**changes: Any) -> TypedModel:
    """``y = exp(x) * c + exp(x)``, with changes."""
    given = {"fact": "B,2,f32", "factor": [2.0, 3.0], "op": Add(), "twice": False, "names": ("x", "e", "y")} | changes
    model = TypedModel()
    x = model.add_source(given["names"][0], parse_typed_fact(given["fact"], model.symbols))
    factor = model.add_const("c", np.array([given["factor"]], np.float32))
    e = model.wire_node(given["names"][1], Exp(), [x])
    again = model.wire_node("again", Exp(), [x]) if given["twice"] else e
    scaled = model.wire_node("scaled", Mul(), [*e, factor])
    model.set_outputs(model.wire_node(given["names"][2], given["op"], [*scaled, *again]))
    return model


def sorted_differently(model: TypedModel) -> TypedModel:
    """The same model with its nodes in another order: constants and sources last."""
    other = pickle.loads(pickle.dumps(model))
    order = [node.id for node in reversed(list(other.live_nodes()))]
    place = {old: new for new, old in enumerate(order)}
    nodes = [other.nodes[old] for old in order]
    for node in nodes:
        node.id = place[node.id]
        node.inputs = [OutletId(place[outlet.node], outlet.slot) for outlet in node.inputs]
    other.nodes = nodes
    other.inputs = [OutletId(place[outlet.node], outlet.slot) for outlet in other.inputs]
    other.set_outputs([OutletId(place[outlet.node], outlet.slot) for outlet in other.outputs])
    return other


@given(typed_models(steps=10))
def test_copies_are_the_same(grown: Grown) -> None:
    model = grown.model
    compact = model.clone()
    compact.compact()
    for copy in (model.clone(), compact, pickle.loads(pickle.dumps(model)), sorted_differently(model)):
        assert same_model(model, copy)
        assert fingerprint(model) == fingerprint(copy)
        assert outline(model) == outline(copy)
    for copy in (model.clone(), compact, pickle.loads(pickle.dumps(model))):
        assert same_model(model, copy, names=True)
        assert fingerprint(model, names=True) == fingerprint(copy, names=True)


@given(typed_models(steps=10), typed_models(steps=10))
def test_fingerprints_are_equal_exactly_for_the_same_models(a: Grown, b: Grown) -> None:
    assert (fingerprint(a.model) == fingerprint(b.model)) == same_model(a.model, b.model) == (a.model == b.model)


CHANGES: dict[str, dict[str, Any]] = {
    "a size": {"fact": "1,2,f32"},
    "a symbol": {"fact": "C,2,f32"},
    "a constant": {"factor": [2.0, 3.5]},
    "an operator": {"op": Mul()},
    "one node for two": {"twice": True},
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_noticed(change: str) -> None:
    model, other = chain(), chain(**CHANGES[change])
    assert not same_model(model, other)
    assert fingerprint(model) != fingerprint(other)
    assert model != other


def test_names_count_where_they_are_asked_for() -> None:
    model, other = chain(), chain(names=("input", "e", "y"))
    assert same_model(model, other)
    assert fingerprint(model) == fingerprint(other)
    assert not same_model(model, other, names=True)
    assert fingerprint(model, names=True) != fingerprint(other, names=True)


def test_interface_assertions_and_properties_count() -> None:
    swapped = TypedModel()
    model = TypedModel()
    for one in (model, swapped):
        a, b = (one.add_source(name, parse_typed_fact("2,f32")) for name in "ab")
        one.set_outputs(one.wire_node("y", Exp(), [a]))
        one.inputs = [a, b]
    swapped.inputs.reverse()
    assert model != swapped
    asserted = chain()
    asserted.symbols.add_assertion("B>=3")
    assert asserted != chain()
    owned = chain()
    owned.properties["maker"] = np.array("me", object)
    assert owned != chain()
    assert owned == owned.clone()


def test_operators_with_bodies_compare_by_content() -> None:
    body = chain()
    op = SubmodelOp(body)
    assert op == SubmodelOp(body.clone())
    assert len({op, SubmodelOp(body.clone()), SubmodelOp(chain(op=Mul()))}) == 2
    assert op != SubmodelOp(chain(factor=[1.0, 1.0]))


def test_a_body_that_many_operators_hold_is_read_once() -> None:
    """The paths through these models are 2 to the power of 100."""

    def nested(*, shared: bool) -> TypedModel:
        body = chain()
        for _ in range(100 if shared else 5):
            model = TypedModel()
            outlet = model.add_source("x", parse_typed_fact("B,2,f32", model.symbols))
            for held in (body, body if shared else body.clone()):
                (outlet,) = model.wire_node(model.unique_name("body"), SubmodelOp(held), [outlet])
            model.set_outputs([outlet])
            body = model
        return body

    one, other = nested(shared=True), nested(shared=True)
    assert one == other
    assert hash(one) == hash(other)
    assert fingerprint(one) == fingerprint(other)
    assert one != nested(shared=False)
    assert nested(shared=False) == nested(shared=False)


def test_sizes_are_the_same_in_any_order() -> None:
    a, b = (chain(fact=f"{size},2,f32") for size in ("max(A,B)*(C#D)", "(D#C)*max(B,A)"))
    assert a == b
    assert hash(a) == hash(b)
    assert fingerprint(a) == fingerprint(b)


@dataclass(frozen=True)
class Holding(TypedOp):
    """An operator that holds anything at all."""

    content: Any

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0],)


def holding(content: Any) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,f32"))
    model.set_outputs(model.wire_node("y", Holding(content), [x]))
    return model


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ((1, 2), (1, 2, 3)),
        ((1, (2,)), (1, 2)),
        (("a", "b"), ("ab",)),
        (frozenset("ab"), ("a", "b")),
        (frozenset("ab"), frozenset("abc")),
        (np.float32(1), np.float64(1)),
        (Point(1), Point(2)),
        (Point, Holding),
        (holding, chain),
        ("1", 1),
        (b"a", "a"),
    ],
    ids=range(14),
)
def test_what_operators_hold(one: Any, other: Any) -> None:
    assert fingerprint(holding(one)) == fingerprint(holding(one))
    assert same_model(holding(one), holding(one))
    assert fingerprint(holding(one)) != fingerprint(holding(other))
    assert not same_model(holding(one), holding(other))


def test_the_order_of_sets_means_nothing() -> None:
    assert holding(frozenset(range(50))) == holding(frozenset(reversed(range(50))))
    assert fingerprint(holding(frozenset(range(50)))) == fingerprint(holding(frozenset(reversed(range(50)))))


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(Unsupported, match="builtins:function cannot be compared by what it holds"):
        fingerprint(holding(lambda: None))


def test_fingerprints_are_those_of_other_processes(tmp_path: Path) -> None:
    model = chain()
    model.properties["words"] = np.array(["a", "b"], object)  # texts hash differently in each process
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(model))
    script = (
        "import pickle, sys; from tract_core.model.same import fingerprint;"
        f"print(fingerprint(pickle.load(open({str(path)!r}, 'rb'))))"
    )
    found = {
        subprocess.check_output([sys.executable, "-c", script], text=True, env={"PYTHONHASHSEED": seed}).strip()
        for seed in ("1", "2")
    }
    assert found == {fingerprint(model)}


def test_a_constant_may_be_held_by_several_nodes() -> None:
    def sums(last: float, *names: str) -> TypedModel:
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact("2,f32"))
        held = [
            model.add_const(name, np.array([value], np.float32))
            for name, value in zip(names, (1.0, last), strict=False)
        ]
        (first,) = model.wire_node("first", Add(), [x, held[0]])
        model.set_outputs([*model.wire_node("second", Add(), [first, held[-1]]), held[-1]])
        return model

    one, two, other = sums(1.0, "a"), sums(1.0, "a", "b"), sums(2.0, "a", "b")
    assert same_model(one, two)
    assert fingerprint(one) == fingerprint(two)
    assert not same_model(one, other)
    assert fingerprint(one) != fingerprint(other)
    assert not same_model(one, two, names=True)


def test_each_node_is_read_once() -> None:
    """The paths through this model are 2 to the power of 200."""
    model = TypedModel()
    outlet = model.add_source("x", parse_typed_fact("2,f32"))
    for step in range(200):
        (outlet,) = model.wire_node(f"n{step}", Add(), [outlet, outlet])
    model.set_outputs([outlet])
    assert fingerprint(model) == fingerprint(model.clone())
