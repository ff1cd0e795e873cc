"""A body that is run until it says that it is enough."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tract_core.data import Constant, DatumType
from tract_core.data.containers import Container
from tract_core.model.fact import TypedFact
from tract_core.ops.loop import Loop
from tract_core.plugins.tables import Rows
from tract_onnx.writing.elements import code_of
from tract_onnx.writing.graph import BodyInput
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Loop)
def loop(op: Loop, node: Spelling) -> tuple[str, ...] | None:
    """Loop, whose body is also given whether it was to go on; what only the last iteration says is handed on"""
    number = TypedFact.of(DatumType.I64, ())
    _, go_on, *values = node.inputs
    carried, around = values[: op.carried], values[op.carried :]
    ports = [BodyInput(fact=number), *(BodyInput() for _ in carried), *map(BodyInput, around)]
    body = node.body(op.body, ports)
    body.input.insert(1, helper.make_tensor_value_info(f"{body.name}.go_on", TensorProto.BOOL, []))
    for slot in range(op.carried, op.carried + op.last):
        kind = node.result(slot).datum_type
        if isinstance(kind, Container) or kind is DatumType.STRING:
            return None
        before = helper.make_tensor_value_info(f"{body.name}.before{slot}", code_of(kind), None)
        body.input.append(before)
        shape = (1,) * node.result(slot).rank
        carried.append(node.held(Constant(np.zeros(shape, kind.storage.numpy))))
    return node.several("Loop", len(node.node.outputs), node.as_i64(0), go_on, *carried, body=body)
