"""Values that may be missing."""

from __future__ import annotations

import numpy as np
import onnx

from tract_core.data import OptionalType
from tract_core.errors import CorruptModel, TractError
from tract_core.model.graph import OutletId
from tract_core.ops.optional import OptionalConstruct, OptionalHasElement, OptionalNone, wire_get_element
from tract_core.plugins.tables import Rows
from tract_onnx.containers import item_fact
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Optional")
def optional(node: OnnxNode, wire: Wiring) -> OutletId:
    """The input, or nothing where a value of type ``type`` could be"""
    x = wire.optional_input(0)
    if x is not None:
        return wire.op(OptionalConstruct(), x)
    given = node.attributes.get("type")
    if given is None or given.type not in (onnx.AttributeProto.UNDEFINED, onnx.AttributeProto.TYPE_PROTO):
        raise CorruptModel("Optional without an input wants an attribute 'type', which is a type")
    try:
        return wire.op(OptionalNone(item_fact(given.tp)))
    except TractError as error:
        raise error.at("attribute 'type'") from None


@onnx_op(ROWS, "OptionalHasElement")
def has_element(node: OnnxNode, wire: Wiring) -> OutletId:
    """Whether there is a value; an input that is left out is none, and what is no optional is one"""
    x = wire.optional_input(0)
    if x is None or not isinstance(wire.dtype(x), OptionalType):
        return wire.const(np.array(x is not None))
    return wire.op(OptionalHasElement(), x)


@onnx_op(ROWS, "OptionalGetElement")
def get_element(node: OnnxNode, wire: Wiring) -> OutletId:
    """The value, which must be there; what is no optional is one"""
    x = wire.input(0)
    return wire.through(wire_get_element, x) if isinstance(wire.dtype(x), OptionalType) else x
