"""What nodes cost, how long they take, where they run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core import Model, Runnable, runtime_for_name
from tract_core.data import DatumType
from tract_core.dims import evaluate, parse_dim
from tract_core.errors import InputError, Unsupported
from tract_core.model import AxesMapping, TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.parts import Part
from tract_core.runtime.profile import chrome_trace, profile


@pytest.fixture
def make() -> Callable[[], Runnable]:
    """``y = x @ w + b`` with ``x: B,S,12,f32`` and ``w: 12,3``."""

    def prepared() -> Runnable:
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact("B,S,12,f32", model.symbols))
        w = model.add_const("w", np.ones((12, 3), np.float32))
        b = model.add_const("b", np.ones((1, 1, 3), np.float32))
        (product,) = model.wire_node("product", EinSum(AxesMapping.parse("bsk,kn->bsn"), DatumType.F32), [x, w])
        model.set_outputs(model.wire_node("y", Add(), [product, b]))
        return runtime_for_name("reference").prepare(Model.from_typed(model))

    return prepared


X = np.zeros((2, 5, 12), np.float32)


def _by_name(text: str) -> dict[str, dict[str, Any]]:
    return {node["node_name"]: node for node in json.loads(text)["nodes"]}


def test_costs_without_inputs(make: Callable[[], Runnable]) -> None:
    runnable = make()
    content = json.loads(runnable.profile_json())
    assert content == json.loads(runnable.profile_json(None))
    assert content["profiling_info"] is None
    nodes = _by_name(runnable.profile_json())
    assert nodes["product"]["op_name"] == "EinSum"
    assert all(node["secs_per_iter"] is None for node in nodes.values())
    (scope, number) = nodes["product"]["qualified_id"]
    assert scope == []
    assert runnable.typed.nodes[number].name == "product"
    assert nodes["w"]["cost"] == {"PARAMS(F32)": "36"}


def test_formulas_are_symbolic_and_exact(make: Callable[[], Runnable]) -> None:
    cost = _by_name(make().profile_json())["product"]["cost"]
    formula = parse_dim(cost["FMA(F32)"])
    for b, s in ((1, 1), (2, 5), (7, 3)):
        assert evaluate(formula, {"B": b, "S": s}) == b * s * 12 * 3


def test_timings(make: Callable[[], Runnable]) -> None:
    runnable = make()
    text = runnable.profile_json([X])
    info = json.loads(text)["profiling_info"]
    assert info["iterations"] >= 1
    assert info["secs_per_iter"] > 0
    spent = [node["secs_per_iter"] for node in _by_name(text).values() if node["secs_per_iter"] is not None]
    assert len(spent) == 2
    assert 0 < sum(spent) <= info["secs_per_iter"]
    assert _by_name(text)["w"]["secs_per_iter"] is None
    assert json.loads(runnable.profile_json({"x": X}))["profiling_info"] is not None


def test_wrong_inputs(make: Callable[[], Runnable]) -> None:
    for use in (make().profile_json, make().chrome_trace):
        with pytest.raises(InputError, match="0 inputs were given"):
            use([])


def test_the_trace_is_a_timeline(make: Callable[[], Runnable]) -> None:
    content = json.loads(make().chrome_trace([X]))
    events = [event for event in content["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events] == ["product", "y"]
    assert [event["cat"] for event in events] == ["EinSum", "Add"]
    assert events[0]["args"]["outputs"] == ["B,S,3,f32"]
    first, second = events
    assert first["ts"] >= 0
    assert first["dur"] > 0
    assert second["ts"] >= first["ts"] + first["dur"] - 1e-3
    assert all(isinstance(event["pid"], int) and isinstance(event["tid"], int) for event in events)
    (named,) = [event for event in content["traceEvents"] if event["ph"] == "M"]
    assert named["args"] == {"name": "reference"}


def test_explain(make: Callable[[], Runnable]) -> None:
    explanation = make().explain()
    assert [(p.names, p.ops, p.where) for p in explanation.placements] == [
        (("product",), ("EinSum",), "cpu"),
        (("y",), ("Add",), "cpu"),
    ]
    assert all(p.how and p.why for p in explanation.placements)
    assert repr(explanation) == str(explanation)
    assert str(explanation).splitlines()[0] == "runtime reference: 2 by numpy on cpu"
    assert "product" in str(explanation)
    content = json.loads(explanation.to_json())
    assert content["runtime"] == "reference"
    assert content["placements"][1]["names"] == ["y"]


def test_explanations_line_up_and_escape() -> None:
    one = Placement(Part((0,)), ("<a>",), ("Op",), "gpu", "kernel", "fast")
    explanation = Explanation("toy", (one, Placement(Part((1,)), ("bb",), ("O",), "cpu", "h", "w")))
    lines = str(explanation).splitlines()
    assert lines == [
        "runtime toy: 1 by kernel on gpu, 1 by h on cpu",
        "",
        "node  operator  where  how     why",
        "<a>   Op        gpu    kernel  fast",
        "bb    O         cpu    h       w",
    ]
    assert "&lt;a&gt;" in explanation._repr_html_()
    assert Explanation("toy", ()).summary() == "runtime toy: no nodes"


class Opaque:
    """A plan that runs a model in one piece."""

    def spawn(self) -> Opaque:
        return self

    def run(self, inputs: Any) -> Any:
        return list(inputs)

    def freeze(self) -> Any:
        return None

    def thaw(self, frozen: Any) -> None:
        return None

    def explain(self) -> Explanation:
        return Explanation("opaque", ())


def test_plans_that_cannot_time_nodes(make: Callable[[], Runnable]) -> None:
    model = make().typed
    content = json.loads(profile(model, Opaque(), [X]))
    assert content["profiling_info"]["secs_per_iter"] > 0
    assert {node["secs_per_iter"] for node in content["nodes"]} == {None}
    with pytest.raises(Unsupported, match="runtime 'opaque' does not time single nodes"):
        chrome_trace(model, Opaque(), [X])
