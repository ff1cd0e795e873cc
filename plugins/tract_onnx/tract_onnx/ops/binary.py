"""Operators that combine tensors element by element, broadcast as NumPy does."""

from __future__ import annotations

from functools import reduce
from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary as core
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import ONNX, OnnxFn, onnx_op, row_key
from tract_onnx.wiring import Wiring

ROWS = Rows()

_SAME: Final[dict[str, TypedOp]] = {
    "Add": core.Add(),
    "And": core.And(),
    "BitwiseAnd": core.BitAnd(),
    "BitwiseOr": core.BitOr(),
    "BitwiseXor": core.BitXor(),
    "Div": core.Div(),
    "Equal": core.Eq(),
    "Greater": core.Gt(),
    "GreaterOrEqual": core.Ge(),
    "Less": core.Lt(),
    "LessOrEqual": core.Le(),
    "Mul": core.Mul(),
    "Or": core.Or(),
    "Sub": core.Sub(),
    "Xor": core.Xor(),
}
"""ONNX operators that are one core operator."""


def _same(op: TypedOp) -> OnnxFn:
    def wire_same(node: OnnxNode, wire: Wiring) -> OutletId:
        return wire.binary(op, wire.input(0), _second(node, wire))

    return wire_same


def _second(node: OnnxNode, wire: Wiring) -> OutletId:
    """The second operand. Before version 7, an attribute says at which axis of the first one it begins."""
    b = wire.input(1)
    if node.version >= 7 or not node.has("axis"):
        return b
    rank, own = wire.rank(wire.input(0)), wire.rank(b)
    axis = node.axis("axis", rank)
    return wire.unsqueeze(b, list(range(own, own + max(0, rank - axis - own))))


for _name, _op in _SAME.items():
    ROWS.add(ONNX, row_key(_name, 1), _same(_op))


def _folded(op: TypedOp) -> OnnxFn:
    def wire_folded(node: OnnxNode, wire: Wiring) -> OutletId:
        return reduce(lambda a, b: wire.binary(op, a, b), wire.all_inputs())

    return wire_folded


for _name, _op in (("Max", core.Max()), ("Min", core.Min())):
    ROWS.add(ONNX, row_key(_name, 1), _folded(_op))


@onnx_op(ROWS, "Sum")
def total(node: OnnxNode, wire: Wiring) -> OutletId:
    """The sum of the inputs; that of narrow floats is rounded once"""
    return wire.cast(_sum(wire), wire.dtype(wire.input(0)))


@onnx_op(ROWS, "Mean")
def mean(node: OnnxNode, wire: Wiring) -> OutletId:
    """The sum of the inputs, divided by how many there are; that of narrow floats is rounded once"""
    found = _sum(wire)
    divided = wire.op(core.Div(), found, wire.scalar(len(wire.slots), found))
    return wire.cast(divided, wire.dtype(wire.input(0)))


def _sum(wire: Wiring) -> OutletId:
    """The sum of the inputs, in f32 for narrow floats, which might overflow on the way."""
    inputs = wire.all_inputs()
    kind = wire.dtype(inputs[0])
    if len(inputs) > 1 and kind.is_float() and kind.itemsize < 4:
        inputs = [wire.cast(x, DatumType.F32) for x in inputs]
    return reduce(lambda a, b: wire.binary(core.Add(), a, b), inputs)


@onnx_op(ROWS, "Pow")
def power(node: OnnxNode, wire: Wiring) -> OutletId:
    """A to the power b, in the type of a; where an integer meets a float, computed in the float's type"""
    a, b = wire.input(0), _second(node, wire)
    kind = wire.dtype(a)
    if kind.is_integer() and wire.dtype(b).is_float():
        wide = wire.dtype(b)
        return wire.cast(wire.binary(core.Pow(), wire.cast(a, wide), b), kind)
    return wire.binary(core.Pow(), a, wire.cast(b, kind))


@onnx_op(ROWS, "Mod", since=10)
def mod(node: OnnxNode, wire: Wiring) -> OutletId:
    """The remainder with the sign of b, or, with ``fmod``, with the sign of a"""
    op = core.Rem() if node.flag("fmod") else core.FloorRem()
    return wire.binary(op, wire.input(0), wire.input(1))


@onnx_op(ROWS, "BitShift", since=11)
def bit_shift(node: OnnxNode, wire: Wiring) -> OutletId:
    """The bits of a moved by b places"""
    left = node.choice("direction", ("LEFT", "RIGHT")) == "LEFT"
    return wire.binary(core.ShiftLeft() if left else core.ShiftRight(), wire.input(0), wire.input(1))


@onnx_op(ROWS, "Where", since=9)
def where(node: OnnxNode, wire: Wiring) -> OutletId:
    """The second input where the first is true, else the third"""
    return wire.select(wire.input(0), wire.input(1), wire.input(2))
