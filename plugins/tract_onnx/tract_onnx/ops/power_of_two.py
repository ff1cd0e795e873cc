"""Conversions to powers of two, which have a rounding of their own."""

from __future__ import annotations

from tract_core.data import DatumType, DType
from tract_core.ops.wired import Results
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.power_of_two import PowerRounding, ToPowerOfTwo
from tract_onnx.ops.cast import cast, cast_like
from tract_onnx.registry import OnnxFn, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Cast", since=24)
def cast_24(node: OnnxNode, wire: Wiring) -> Results:
    """As `cast`; attributes say how numbers become powers of two"""
    return _cast(node, wire, node.element_type("to"), cast)


@onnx_op(ROWS, "CastLike", since=24)
def cast_like_24(node: OnnxNode, wire: Wiring) -> Results:
    """As `cast_like`; attributes say how numbers become powers of two"""
    return _cast(node, wire, wire.dtype(wire.input(1)), cast_like)


def _cast(node: OnnxNode, wire: Wiring, to: DType, otherwise: OnnxFn) -> Results:
    x = wire.input(0)
    if to is not DatumType.F8E8M0FNU or wire.dtype(x) in (to, DatumType.STRING):
        return otherwise(node, wire)
    rounding = node.member("round_mode", PowerRounding, PowerRounding.UP)
    return wire.op(ToPowerOfTwo(rounding, node.flag("saturate", True)), x)
