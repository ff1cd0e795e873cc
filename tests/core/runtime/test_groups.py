"""Fused nodes, nodes in bodies, and runtimes with a model of their own, in explanations, profiles and traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tract_core import Model, Runnable, runtime_for_name
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Abs, Exp, Neg, Tanh
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.submodel import SubmodelOp
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.profile import chrome_trace, profile
from tract_core.runtime.protocol import OwningPlan, running_model

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def chained() -> TypedModel:
    """y = exp(-|x|) + tanh(-|x|): a chain of two, which two others read, each with a reader of its own."""
    model = TypedModel()
    (size,) = model.wire_node("size", Abs(), [source(model, "x", "N,3,f32")])
    (minus,) = model.wire_node("minus", Neg(), [size])
    terms = [model.wire_node(op.name.lower(), op, [minus])[0] for op in (Exp(), Tanh())]
    model.set_outputs(model.wire_node("y", Add(), terms))
    return model


def in_bodies() -> TypedModel:
    """Sums of the rows so far of exp(-x), in a loop whose body has a body that takes the exponentials."""
    inner = TypedModel()
    (minus,) = inner.wire_node("minus", Neg(), [source(inner, "r", "1,3,f32")])
    inner.set_outputs(inner.wire_node("exp", Exp(), [minus]))
    body = TypedModel()
    row, total = source(body, "row", "1,3,f32"), source(body, "total", "1,3,f32")
    body.set_outputs(body.wire_node("add", Add(), [total, *body.wire_node("inner", SubmodelOp(inner), [row])]))
    model = TypedModel()
    x, start = source(model, "x", "N,3,f32"), source(model, "start", "1,3,f32")
    loop = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, full=FullOutput(0, 0)),))
    model.set_outputs(model.wire_node("loop", loop, [x, start]))
    return model


def prepared(model: TypedModel, runtime: str = "reference") -> Runnable:
    return runtime_for_name(runtime).prepare(Model.from_typed(model))


GIVEN = [X, np.zeros((1, 3), np.float32)]


def names(explanation: Any) -> list[tuple[str, ...]]:
    return [placement.names for placement in explanation.placements]


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 5, 8192])
@pytest.mark.usefixtures("fuse_installed")
@pytest.mark.parametrize(("make", "given"), [(chained, [X]), (in_bodies, GIVEN), (chained, [X[:0]])])
def test_what_is_fused_gives_what_single_nodes_give(
    make: Callable[[], TypedModel], given: list[Any], block: int
) -> None:
    (wanted,) = prepared(make()).run(given)
    (found,) = prepared(make(), f"fuse(block={block})").run(given)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.usefixtures("fuse_installed")
def test_explanations_show_groups() -> None:
    explanation = prepared(chained(), "fuse").explain()
    assert names(explanation) == [("size", "minus"), ("exp",), ("tanh", "y")]
    assert explanation.summary() == "runtime fuse: 5 by blocks on cpu (2 groups)"
    assert "\nsize, minus  Abs, Neg   cpu    blocks  each element" in str(explanation)
    (first, *_) = json.loads(explanation.to_json())["placements"]
    assert (first["names"], first["ops"]) == (["size", "minus"], ["Abs", "Neg"])
    ids = [chained().node_by_name(name).id for name in ("size", "minus")]
    assert first["qualified_ids"] == [[[], node] for node in ids]


@pytest.mark.usefixtures("fuse_installed")
def test_profiles_time_groups_whole() -> None:
    content = json.loads(prepared(chained(), "fuse").profile_json([X]))
    nodes = {node["node_name"]: node for node in content["nodes"]}
    assert [group["node_names"] for group in content["groups"]] == [["size", "minus"], ["tanh", "y"]]
    assert [group["op_names"] for group in content["groups"]] == [["Abs", "Neg"], ["Tanh", "Add"]]
    for number, group in enumerate(content["groups"]):
        assert group["qualified_ids"] == [nodes[name]["qualified_id"] for name in group["node_names"]]
        assert group["secs_per_iter"] > 0
        assert all(nodes[name]["group"] == number for name in group["node_names"])
    assert {name for name, node in nodes.items() if "group" not in node} == {"x", "exp"}
    assert {name for name, node in nodes.items() if node["secs_per_iter"] is not None} == {"exp"}
    assert nodes["size"]["cost"]
    assert json.loads(prepared(chained()).profile_json([X]))["groups"] == []


@pytest.mark.usefixtures("fuse_installed")
def test_traces_show_groups() -> None:
    content = json.loads(prepared(chained(), "fuse").chrome_trace([X]))
    spans = [event for event in content["traceEvents"] if event["ph"] == "X"]
    assert [span["name"] for span in spans] == ["size, minus", "exp", "tanh, y"]
    assert spans[0]["args"] == {"op": "Abs, Neg", "outputs": ["N,3,f32"]}
    for one, following in pairwise(spans):
        assert one["ts"] + one["dur"] <= following["ts"] + 1e-3


@pytest.mark.usefixtures("fuse_installed")
def test_observers_see_what_leaves_a_group() -> None:
    model = chained()
    seen: list[tuple[tuple[str, ...], list[str]]] = []

    def note(part: Part, outputs: Any) -> Any:
        seen.append((part.names(model), [model.outlet_name(outlet) for outlet in outputs]))
        return {outlet: array * 0 for outlet, array in outputs.items()} if part.names(model)[0] == "exp" else None

    plan = runtime_for_name("fuse").backend.prepare(model)
    (found,) = plan.spawn_observed(note).run([X])  # pyright: ignore[reportAttributeAccessIssue]: this plan can
    assert seen == [(("size", "minus"), ["minus"]), (("exp",), ["exp"]), (("tanh", "y"), ["y"])]
    np.testing.assert_allclose(found, np.tanh(-np.abs(X, dtype=np.float64)), rtol=1e-6)


@pytest.mark.usefixtures("fuse_installed")
def test_a_group_that_fails_names_the_node() -> None:
    def refuse(op: Any, x: Any) -> Any:
        raise ZeroDivisionError("no such number")

    plan: Any = runtime_for_name("fuse").backend.prepare(chained())
    plan.nodes |= {number: replace(node, meaning=refuse) for number, node in plan.nodes.items() if node.name == "minus"}
    with pytest.raises(RunError, match=r"node 'minus' \(Neg\): ZeroDivisionError: no such number"):
        plan.spawn().run([X])


# -- bodies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", ["reference", "fuse"])
@pytest.mark.usefixtures("fuse_installed")
def test_explanations_enter_bodies(runtime: str) -> None:
    found = names(prepared(in_bodies(), runtime).explain())
    apart = [("loop/inner/minus",), ("loop/inner/exp",)]
    inside = [("loop/inner/minus", "loop/inner/exp")] if runtime == "fuse" else apart
    assert found == [("loop",), ("loop/inner",), ("loop/add",), *inside]


def test_profiles_enter_bodies() -> None:
    model = in_bodies()
    content = json.loads(prepared(model).profile_json(GIVEN))
    loop = model.node_by_name("loop")
    body = loop.op.body  # type: ignore[attr-defined]
    inner = body.node_by_name("inner")
    wanted = {
        "loop": [],
        "add": [[loop.id, 0]],
        "inner": [[loop.id, 0]],
        "minus": [[loop.id, 0], [inner.id, 0]],
        "exp": [[loop.id, 0], [inner.id, 0]],
    }
    nodes = {node["node_name"]: node for node in content["nodes"] if node["node_name"] in wanted}
    assert {name: node["qualified_id"][0] for name, node in nodes.items()} == wanted
    assert nodes["inner"]["qualified_id"] == [[[loop.id, 0]], inner.id]
    spent = {name: node["secs_per_iter"] for name, node in nodes.items()}
    assert spent["loop"] > spent["add"] + spent["inner"] > 0
    assert spent["inner"] > spent["minus"] + spent["exp"] > 0
    assert nodes["minus"]["cost"] == {"FMA(F32)": "3"}


@pytest.mark.parametrize(
    ("runtime", "inside"),
    [("reference", ["loop/inner/minus", "loop/inner/exp"]), ("fuse", ["loop/inner/minus, loop/inner/exp"])],
)
@pytest.mark.usefixtures("fuse_installed")
def test_traces_enter_bodies(runtime: str, inside: list[str]) -> None:
    """Every iteration has its spans, inside those of the nodes that run the bodies."""
    content = json.loads(prepared(in_bodies(), runtime).chrome_trace(GIVEN))
    spans = [event for event in content["traceEvents"] if event["ph"] == "X"]
    counts = {name: sum(span["name"] == name for span in spans) for name in {span["name"] for span in spans}}
    assert counts == {"loop": 1, "loop/add": 4, "loop/inner": 4, **dict.fromkeys(inside, 4)}
    for span in spans:
        around = span["name"].split(", ")[0].rpartition("/")[0]
        assert not around or any(
            one["ts"] - 1e-3 <= span["ts"] and span["ts"] + span["dur"] <= one["ts"] + one["dur"] + 1e-3
            for one in spans
            if one["name"] == around
        )


# -- models of their own -----------------------------------------------------------------------------------------------


STEPS = [f"step_{number}" for number in range(20)]


class Rewriting(TypedSimplePlan):
    """Runs another model than the one that it was given, with more nodes."""

    def __init__(self, model: TypedModel) -> None:
        other = TypedModel()
        outlet = source(other, "x", "N,3,f32")
        for name in STEPS:
            (outlet,) = other.wire_node(name, Neg(), [outlet])
        other.set_outputs([outlet])
        super().__init__(other)


def test_a_runtime_with_a_model_of_its_own() -> None:
    model = chained()
    plan = Rewriting(model)
    assert isinstance(plan, OwningPlan)
    assert running_model(plan, model) is plan.model
    events = json.loads(chrome_trace(model, plan, [X]))["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == STEPS
    nodes = json.loads(profile(model, plan, [X]))["nodes"]
    assert [node["node_name"] for node in nodes if node["secs_per_iter"] is not None] == STEPS


def test_what_else_a_plan_calls_its_model_is_none() -> None:
    class Compiled:
        model = "the name of a file"

    model = chained()
    assert running_model(Compiled(), model) is model  # type: ignore[arg-type]


def test_parts_of_models() -> None:
    model = in_bodies()
    loop = model.node_by_name("loop").id
    body = model.node_by_name("loop").op.body  # type: ignore[attr-defined]
    inner = body.node_by_name("inner").id
    minus, exp = (body.node_by_name("inner").op.model.node_by_name(name).id for name in ("minus", "exp"))
    part = Part((minus, exp), ((loop, 0), (inner, 0)))
    assert part.names(model) == ("loop/inner/minus", "loop/inner/exp")
    assert part.ops(model) == ("Neg", "Exp")
    assert part.results(model) == [OutletId(exp)]
    assert Part((minus,), part.body).results(model) == [OutletId(minus)]
