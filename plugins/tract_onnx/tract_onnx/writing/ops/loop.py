"""A body that is run until it says that it is enough."""

from __future__ import annotations

from onnx import TensorProto, helper

from tract_core.data import DatumType
from tract_core.model.fact import TypedFact
from tract_core.ops.loop import Loop
from tract_core.plugins.tables import Rows
from tract_onnx.writing.graph import BodyInput
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Loop)
def loop(op: Loop, node: Spelling) -> tuple[str, ...] | None:
    """Loop, whose body is also given whether it was to go on"""
    if op.last:
        return None
    number = TypedFact.of(DatumType.I64, ())
    _, go_on, *values = node.inputs
    carried, around = values[: op.carried], values[op.carried :]
    ports = [BodyInput(fact=number), *(BodyInput() for _ in carried), *map(BodyInput, around)]
    body = node.body(op.body, ports)
    body.input.insert(1, helper.make_tensor_value_info(f"{body.name}.go_on", TensorProto.BOOL, []))
    return node.several("Loop", len(node.node.outputs), node.as_i64(0), go_on, *carried, body=body)
