"""Conversions between element types."""

from __future__ import annotations

from typing import Final

import onnx

from tract_core.data import DatumType, DType
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Max, Min
from tract_core.ops.cast import Cast
from tract_core.ops.rounding import greatest
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.tensors import element_type
from tract_onnx.wiring import Wiring

ROWS = Rows()

_SATURATING: Final = frozenset({DatumType.F8E4M3FN, DatumType.F8E4M3FNUZ, DatumType.F8E5M2, DatumType.F8E5M2FNUZ})
"""The types for which the attribute ``saturate`` counts."""


@onnx_op(ROWS, "Cast")
def cast_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """The element type is given by name, as ``"FLOAT"``"""
    name = node.text("to")
    try:
        number = onnx.TensorProto.DataType.Value(name)
    except ValueError:
        raise node.misfit("to", f"is {name[:80]!r}", "an element type") from None
    return _cast(node, wire, element_type(number))


@onnx_op(ROWS, "Cast", since=6)
def cast(node: OnnxNode, wire: Wiring) -> OutletId:
    """X in another element type"""
    return _cast(node, wire, node.element_type("to"))


@onnx_op(ROWS, "CastLike", since=15)
def cast_like(node: OnnxNode, wire: Wiring) -> OutletId:
    """X in the element type of another tensor"""
    return _cast(node, wire, wire.dtype(wire.input(1)))


def _cast(node: OnnxNode, wire: Wiring, to: DType) -> OutletId:
    x = wire.input(0)
    kind = wire.dtype(x)
    if kind == to:
        return x
    if to in _SATURATING and node.flag("saturate", True):
        # Narrow floats have no room for infinities: what is too large becomes the greatest number.
        limit = greatest(to)
        if not kind.is_float() or kind.itemsize == 1:
            x = wire.op(Cast(DatumType.F32), x)
        x = wire.op(Min(), wire.op(Max(), x, wire.scalar(-limit, x)), wire.scalar(limit, x))
    return wire.op(Cast(to), x)
