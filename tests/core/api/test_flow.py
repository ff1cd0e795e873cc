"""The typical flow, from a file to numbers, with the ONNX frontend; and a loop that goes on in another process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tract_core as tract
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput

WEIGHTS = np.random.default_rng(11).normal(size=(4, 3))


@pytest.fixture
def onnx_file(tmp_path: Path) -> Path:
    """``y = relu(x @ w)``, ``x: B,4``, exported by somebody called "a test"."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("tract_onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", kind, ["B", 4])],
        [helper.make_tensor_value_info("y", kind, ["B", 3])],
        [onnx.numpy_helper.from_array(WEIGHTS.astype(np.float32), "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, producer_name="a test", ir_version=8), path)
    return path


def test_from_a_file_to_numbers(onnx_file: Path) -> None:
    loaded = tract.onnx().load(onnx_file)
    assert (loaded.input_names(), loaded.output_names()) == (["x"], ["y"])
    loaded.set_input_fact(0, "B,4,f32")
    assert str(loaded.into_analysed().output_fact(0)) == "B,3,f32"
    model = loaded.into_model()
    assert str(model.property("onnx.producer_name")) == "Tensor(,STRING a test)"
    runnable = tract.runtime_for_name("default").prepare(model)
    x = np.random.default_rng(12).normal(size=(5, 4)).astype(np.float32)
    wanted = np.maximum(x.astype(np.float64) @ WEIGHTS.astype(np.float32), 0)
    assert (wanted > 0).any()
    np.testing.assert_allclose(runnable.run([x])[0].to_numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(runnable.spawn_state().run({"x": x})[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("f32_to_f16", np.float16),
        ('{"name": "f32_to_f16", "keep_io_types": true}', np.float32),
        ('{"name": "set_symbols", "values": {"B": 5}}', np.float32),
    ],
)
def test_transforms_on_the_way(onnx_file: Path, name: str, kind: type) -> None:
    model = tract.onnx().load(str(onnx_file)).into_model()
    model.transform(name)
    x = np.random.default_rng(13).normal(size=(5, 4)).astype(kind)
    found = model.into_runnable().run([x])[0].to_numpy()
    assert found.dtype == kind
    np.testing.assert_allclose(found, np.maximum(x @ WEIGHTS, 0), rtol=1e-2, atol=1e-2)


def _loop() -> tract.Runnable:
    """Running sums of ``x: T,f32``, from ``start: 1,f32``."""
    body = TypedModel()
    state, item = (body.add_source(name, parse_typed_fact("1,f32")) for name in ("state", "item"))
    (total,) = body.wire_node("total", Add(), [state, item])
    body.set_outputs([total])
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("T,f32", model.symbols))
    start = model.add_source("start", parse_typed_fact("1,f32"))
    scan = Scan(body, (StateInput(), ScannedInput(0)), (OutputMapping(state=True, full=FullOutput(0, 0)),))
    model.set_outputs(model.wire_node("sums", scan, [start, x]))
    return tract.Model.from_typed(model).into_runnable()


X, START = np.arange(1, 8, dtype=np.float32), np.array([100], np.float32)


def test_a_loop_goes_on_in_another_process(run_script: Callable[[str], str], tmp_path: Path) -> None:
    state = _loop().spawn_state()
    assert state.run([X[:3], START])[0].to_numpy().tolist() == [101, 103, 106]
    file = tmp_path / "state.pickle"
    file.write_bytes(pickle.dumps(state.freeze()))
    script = f"""
import pickle, pathlib, json, numpy
state = pickle.loads(pathlib.Path({str(file)!r}).read_bytes()).unfreeze()
x, start = numpy.array([4, 5], numpy.float32), numpy.array([100], numpy.float32)
print(json.dumps(state.run([x, start])[0].to_numpy().tolist()))
"""
    assert json.loads(run_script(script)) == [110, 115]
    assert state.run([X[3:], START])[0].to_numpy().tolist() == [110, 115, 121, 128]


def test_the_cost_of_a_loop_counts_its_turns() -> None:
    nodes: list[dict[str, Any]] = json.loads(_loop().profile_json())["nodes"]
    (loop,) = [node for node in nodes if node["node_name"] == "sums"]
    assert loop["cost"] == {"FMA(F32)": "T"}
