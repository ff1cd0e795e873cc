"""Tensors repeated along axes."""

from __future__ import annotations

from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.broadcast_dyn import DynBroadcast
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, MultiBroadcastTo)
def broadcast(op: MultiBroadcastTo, node: Spelling) -> str:
    """Expand"""
    return node.add("Expand", node.input(), node.sizes(node.result().shape))


@ROWS.row(ONNX_WRITE, DynBroadcast)
def dyn_broadcast(op: DynBroadcast, node: Spelling) -> str:
    """Expand"""
    return node.add("Expand", *node.inputs)
