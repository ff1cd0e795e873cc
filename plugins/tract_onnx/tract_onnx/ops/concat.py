"""Tensors put together."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Concat")
def concat_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """Along axis 1 where none is given"""
    return _concat(wire, node.integer("axis", 1))


@onnx_op(ROWS, "Concat", since=4)
def concat_4(node: OnnxNode, wire: Wiring) -> OutletId:
    """The inputs, one after the other along ``axis``"""
    return _concat(wire, node.integer("axis"))


def _concat(wire: Wiring, axis: int) -> OutletId:
    inputs = wire.all_inputs()
    axis = wire.axis(axis, wire.rank(inputs[0]))
    return inputs[0] if len(inputs) == 1 else wire.op(TypedConcat(axis), *inputs)
