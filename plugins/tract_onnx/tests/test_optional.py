"""Optionals, against written-down results: the published ONNX Runtime takes them from Python only in part."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_check import load
from onnx_containers import check_text, model_of, outputs_of, plan_of

import tract_core
from tract_core.errors import CorruptModel, InputError, RunError, Unsupported


def f32(*values):
    return np.array(values, np.float32)


def test_there_or_not():
    body = "f (optional(float[M]) x) => (bool y) { y = OptionalHasElement (x) }"
    check_text(body, f32(1, 2), wanted=[np.array(True)])
    check_text(body, None, wanted=[np.array(False)])


def test_get_element():
    body = "f (optional(float[M]) x) => (float[M] y, int64[1] n) { y = OptionalGetElement (x)\n n = Shape (y) }"
    check_text(body, f32(1, 2, 3), wanted=[f32(1, 2, 3), np.array([3])])
    with pytest.raises(RunError, match="the optional is empty") as caught:
        outputs_of(body, None)
    assert "OptionalHasElement" in str(caught.value)


def test_get_element_of_a_sequence():
    body = "f (optional(seq(float[M])) x) => (seq(float[M]) y) { y = OptionalGetElement (x) }"
    check_text(body, [f32(1), f32(2, 3)], wanted=[[f32(1), f32(2, 3)]])


def test_what_is_no_optional_is_there():
    body = "f (float[2] x) => (float[2] y, bool z) { y = OptionalGetElement (x)\n z = OptionalHasElement (x) }"
    check_text(body, f32(1, 2), wanted=[f32(1, 2), np.array(True)], opset=18)
    check_text('f () => (bool z) { z = OptionalHasElement ("") }', wanted=[np.array(False)], opset=18)


def test_known_optionals_leave_no_trace():
    body = """f (float[2] x) => (float[2] y, bool z) {
        o = Optional (x)
        y = OptionalGetElement (o)
        z = OptionalHasElement (o)
    }"""
    check_text(body, f32(1, 2), wanted=[f32(1, 2), np.array(True)])
    assert not any(node.op.name.startswith("Optional") for node in plan_of(model_of(body)).model.nodes)


def with_empty(elem_type):
    model = model_of("f () => (bool z) { o = Optional ()\n z = OptionalHasElement (o) }")
    attribute = model.graph.node[0].attribute.add()
    attribute.name, attribute.type = "type", attribute.TYPE_PROTO
    attribute.tp.tensor_type.elem_type = elem_type
    return model


def test_empty_optional():
    plan = plan_of(with_empty(1), declutter=False)
    assert plan.run([])[0].tolist() is False
    assert any(str(outlet.fact) == "optional(..,f32)" for node in plan.model.nodes for outlet in node.outputs)


def test_empty_optional_of_no_type():
    with pytest.raises(CorruptModel, match="Optional without an input wants an attribute 'type'"):
        load(model_of("f () => (bool z) { o = Optional ()\n z = OptionalHasElement (o) }")).into_typed()
    with pytest.raises(CorruptModel, match="does not say of what element type"):
        load(with_empty(0)).into_typed()


def test_branches_of_which_one_is_empty():
    body = """f (bool c, float[2] x) => (bool z) {
        o = If (c) <then_branch = t () => (optional(float[2]) r) { r = Optional (x) },
                    else_branch = e () => (optional(float[2]) r) { r = Optional () }>
        z = OptionalHasElement (o)
    }"""
    model = model_of(body)
    attribute = model.graph.node[0].attribute[1].g.node[0].attribute.add()
    attribute.name, attribute.type = "type", attribute.TYPE_PROTO
    attribute.tp.tensor_type.elem_type = 1
    for declutter in (False, True):
        plan = plan_of(model, declutter=declutter)
        assert [plan.run([np.array(c), f32(1, 2)])[0].tolist() for c in (True, False)] == [True, False]


def test_only_the_branch_that_is_taken_looks_inside():
    body = """f (optional(float[M]) o, float[1] d) => (float[] y) {
        has = OptionalHasElement (o)
        y = If (has) <then_branch = t () => (float[] r) { r = OptionalGetElement (o) },
                      else_branch = e () => (float[] r) { r = Identity (d) }>
    }"""
    check_text(body, f32(1, 2), f32(7), wanted=[f32(1, 2)])
    check_text(body, None, f32(7), wanted=[f32(7)])


def test_what_does_not_fit():
    body = "f (optional(float[2]) x) => (bool y) { y = OptionalHasElement (x) }"
    with pytest.raises(InputError, match="the value: axis 0 has size 3, 2,f32 is wanted"):
        outputs_of(body, f32(1, 2, 3))
    with pytest.raises(InputError, match="the value: it is i64, 2,f32 is wanted"):
        outputs_of(body, np.array([1, 2]))


def test_unknown_rank_asks_for_a_fact():
    with pytest.raises(Unsupported, match=r"the rank of what 'x' \(optional\(\.\.,f32\)\) holds is not known"):
        load(model_of("f (optional(float[]) x) => (float[] y) { y = OptionalGetElement (x) }")).into_typed()


def test_none_through_the_public_interface(tmp_path):
    body = (
        "f (optional(float[M]) x) => (optional(float[M]) y, bool z) { y = Identity (x)\n z = OptionalHasElement (x) }"
    )
    onnx.save(model_of(body), tmp_path / "model.onnx")
    model = tract_core.onnx().load(tmp_path / "model.onnx").into_model()
    runnable = tract_core.runtime_for_name("default").prepare(model)
    found, there = runnable.run([None])
    assert found is None
    assert not there.to_numpy()
    for value in (f32(1, 2), tract_core.Tensor.from_numpy(f32(1, 2))):
        found, there = runnable.run([value])
        assert found.to_numpy().tolist() == [1, 2]
        assert there.to_numpy()
