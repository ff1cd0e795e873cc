"""Other inputs, other outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core import Model
from tract_core.data import DatumType
from tract_core.errors import RunError, TransformError
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp, Neg
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.wiring import wire_one
from tract_core.transforms.select import SelectInputs, SelectOutputs

Maker = Callable[..., TypedModel]


def _names(model: TypedModel) -> tuple[list[str], list[str]]:
    return [model.outlet_name(o) for o in model.inputs], [model.outlet_name(o) for o in model.outputs]


def _run(model: TypedModel, *inputs: Any) -> list[Any]:
    return [tensor.to_numpy() for tensor in Model.from_typed(model).into_runnable().run(list(inputs))]


def test_outputs_in_any_order(network: Maker) -> None:
    model = network()
    result = SelectOutputs(["proj", "out"]).apply(model)
    result.check_consistency()
    assert _names(result) == (["x"], ["proj", "out"])
    assert _names(model) == (["x"], ["out", "act"])
    x = np.ones((1, 1, 3), np.float32)
    proj, out = _run(result, x)
    np.testing.assert_allclose(proj, [[[0.9, 1.8]]], rtol=1e-6)
    np.testing.assert_allclose(out, np.exp(np.tanh([[[0.9, 1.8]]])), rtol=1e-6)


def test_what_the_outputs_do_not_need_goes(network: Maker) -> None:
    result = SelectOutputs(("proj",)).apply(network())
    assert [node.name for node in result.live_nodes()] == ["x", "weights", "proj"]
    assert [node.name for node in result.declutter().live_nodes()][-1] == "proj"


def test_inputs_cut_the_model(network: Maker) -> None:
    model = network()
    result = SelectInputs(["proj"]).apply(model)
    result.check_consistency()
    assert _names(result) == (["proj"], ["out", "act"])
    assert sorted(node.name for node in result.live_nodes()) == ["act", "out", "proj"]
    proj = np.array([[[0.5, -1.0]]], np.float32)
    out, act = _run(result, proj)
    np.testing.assert_allclose(act, np.tanh([[[0.5, -1.0]]]), rtol=1e-6)
    np.testing.assert_allclose(out, np.exp(np.tanh([[[0.5, -1.0]]])), rtol=1e-6)
    assert _names(model) == (["x"], ["out", "act"])


def test_an_output_can_become_an_input(network: Maker) -> None:
    result = SelectInputs(["act"]).apply(network())
    act = np.array([[[0.5, -1.0]]], np.float32)
    out, same = _run(result, act)
    np.testing.assert_allclose(out, np.exp(act.astype(np.float64)), rtol=1e-6)
    assert same.tolist() == act.tolist()


def _three() -> TypedModel:
    model = TypedModel()
    a, b, c = (model.add_source(name, parse_typed_fact("2,f32")) for name in "abc")
    (ab,) = model.wire_node("ab", Add(), [a, b])
    model.set_outputs(model.wire_node("abc", Add(), [ab, c]))
    return model


def test_inputs_can_be_put_in_another_order() -> None:
    result = SelectInputs(["c", "ab"]).apply(_three())
    assert _names(result) == (["c", "ab"], ["abc"])
    assert _run(result, np.array([1, 2], np.float32), np.array([10, 20], np.float32))[0].tolist() == [11, 22]


def test_inputs_that_are_still_needed() -> None:
    with pytest.raises(
        TransformError, match=r"select_inputs: the outputs still need 'b', 'c'\n  hint: name these inputs too"
    ):
        SelectInputs(["a"]).apply(_three())
    with pytest.raises(TransformError, match="still need 'c'"):
        SelectInputs(["ab"]).apply(_three())


def test_labels_are_names(network: Maker) -> None:
    model = network()
    model.set_label(model.node_by_name("proj").outlets()[0], "logits")
    assert _names(SelectOutputs(["logits"]).apply(model))[1] == ["logits"]
    assert _names(SelectInputs(["logits"]).apply(model))[0] == ["logits"]
    assert _names(SelectInputs(["proj"]).apply(model))[0] == ["logits"]


@pytest.mark.parametrize(
    ("transform", "problem"),
    [
        (SelectOutputs(["prj"]), r"select_outputs: the model has no tensor named 'prj'\n  hint: did you mean proj"),
        (SelectOutputs(["zzz"]), "select_outputs: the model has no tensor named 'zzz'\n  hint: there are x, out,"),
        (SelectOutputs([]), "select_outputs: 'outputs' is empty"),
        (SelectOutputs(["act", "act"]), "select_outputs: 'act' is named twice"),
        (SelectInputs(["weights"]), "select_inputs: 'weights' is a constant, which cannot become an input"),
        (SelectInputs(["nope"]), "select_inputs: the model has no tensor named 'nope'"),
    ],
)
def test_mistakes(network: Maker, transform: SelectInputs | SelectOutputs, problem: str) -> None:
    with pytest.raises(TransformError, match=problem):
        transform.apply(network())


def test_through_the_public_api(network: Maker) -> None:
    model = Model.from_typed(network())
    model.transform('{"name": "select_outputs", "outputs": ["act"]}')
    model.transform('{"name": "select-inputs", "inputs": ["proj"]}')
    assert (model.input_names(), model.output_names()) == (["proj"], ["act"])


def _with_a_check(*, read: bool) -> TypedModel:
    """``twice`` of x, and ``checked``, of which a run is refused in which the condition is false."""
    model = TypedModel()
    condition = model.add_source("condition", parse_typed_fact("bool"))
    x = model.add_source("x", parse_typed_fact("3,f32"))
    bodies = [model.empty_like() for _ in "te"]
    for body, op in zip(bodies, (Neg(), Cast(DatumType.I32)), strict=True):
        body.set_outputs([wire_one(body, "result", op, body.add_source("x", parse_typed_fact("3,f32")))])
    (checked,) = wire_if(model, "if", condition, (bodies[0], [x]), (bodies[1], [x]))
    outputs = [wire_one(model, "twice", Add(), x, x)]
    model.set_outputs([*outputs, wire_one(model, "checked", Exp(), checked)] if read else outputs)
    return model


def test_what_led_to_other_outputs_only_is_not_checked() -> None:
    result = SelectOutputs(["twice"]).apply(_with_a_check(read=True))
    assert [node.name for node in result.live_nodes()] == ["condition", "x", "twice"]
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(_run(result, np.array(False), x)[0], 2 * x)


def test_what_is_checked_though_nothing_reads_it_stays() -> None:
    for result in (SelectOutputs(["twice"]).apply(_with_a_check(read=False)), _with_a_check(read=False).declutter()):
        assert result.has_node("if")
        with pytest.raises(RunError, match="the else branch gives 3,i32"):
            _run(result, np.array(False), np.ones(3, np.float32))
