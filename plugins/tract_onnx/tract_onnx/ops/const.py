"""Constants written as nodes."""

from __future__ import annotations

import numpy as np

from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Constant")
def constant(node: OnnxNode, wire: Wiring) -> OutletId:
    """The one value among the attributes"""
    return wire.const(_value(node))


def _value(node: OnnxNode) -> Array:
    if node.has("value"):
        return node.array("value")
    if node.has("sparse_value"):
        return node.sparse_tensor("sparse_value")
    if node.has("value_float"):
        return np.array(node.number("value_float"), dtype=np.float32)
    if node.has("value_floats"):
        return node.float_array("value_floats")
    if node.has("value_int"):
        return np.array(node.integer("value_int"), dtype=np.int64)
    if node.has("value_ints"):
        return node.int_array("value_ints")
    if node.has("value_string"):
        return np.array(node.text("value_string"), dtype=object)
    if node.has("value_strings"):
        return np.array(node.texts("value_strings"), dtype=object)
    raise CorruptModel("a Constant has no value")
