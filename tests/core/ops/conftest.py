"""Two ways to compute one operator: on the reference runtime, and with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]


@pytest.fixture(name="run_op", scope="session")
def run_op_fixture() -> Callable[[TypedOp, Sequence[Array]], list[Array]]:
    """``run_op(op, arrays)``: what the reference runtime computes for one operator."""

    def run_op(op: TypedOp, arrays: Sequence[Array]) -> list[Array]:
        model = TypedModel()
        facts = [TypedFact.of(DatumType.from_numpy(array.dtype), array.shape) for array in arrays]
        sources = [model.add_source(f"input{slot}", fact) for slot, fact in enumerate(facts)]
        model.set_outputs(model.wire_node("op", op, sources))
        return TypedSimplePlan(model).run(arrays)

    return run_op


@pytest.fixture(name="run_onnx", scope="session")
def run_onnx_fixture() -> Callable[..., list[Array]]:
    """``run_onnx(type, arrays, opset=17, outputs=1, **attributes)``: what ONNX Runtime computes for one node.

    An array that is ``None`` stands for an input that is left out.
    """
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")

    def run_onnx(
        kind: str, arrays: Sequence[Array | None], *, opset: int = 17, outputs: int = 1, **attributes: Any
    ) -> list[Array]:
        given = {f"input{slot}": array for slot, array in enumerate(arrays) if array is not None}
        names = ["" if array is None else f"input{slot}" for slot, array in enumerate(arrays)]
        results = [f"output{slot}" for slot in range(outputs)]
        inputs = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in given.items()
        ]
        node = onnx.helper.make_node(kind, names, results, **attributes)
        graph = onnx.helper.make_graph([node], "graph", inputs, [onnx.ValueInfoProto(name=name) for name in results])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, given)

    return run_onnx
