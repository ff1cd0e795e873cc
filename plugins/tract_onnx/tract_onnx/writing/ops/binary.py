"""Two tensors, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.model.fact import TypedFact
from tract_core.ops import binary
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


_PLAIN: Final[Mapping[type[binary.Binary], str]] = {
    binary.Add: "Add",
    binary.Sub: "Sub",
    binary.Mul: "Mul",
    binary.Div: "Div",
    binary.Pow: "Pow",
    binary.And: "And",
    binary.Or: "Or",
    binary.Xor: "Xor",
    binary.Eq: "Equal",
    binary.Lt: "Less",
    binary.Le: "LessOrEqual",
    binary.Gt: "Greater",
    binary.Ge: "GreaterOrEqual",
    binary.Min: "Min",
    binary.Max: "Max",
}
_BITS: Final[Mapping[type[binary.Binary], str]] = {
    binary.BitAnd: "BitwiseAnd",
    binary.BitOr: "BitwiseOr",
    binary.BitXor: "BitwiseXor",
}

_UNSIGNED: Final[Mapping[DType, DatumType]] = {
    DatumType.I8: DatumType.U8,
    DatumType.I16: DatumType.U16,
    DatumType.I32: DatumType.U32,
    DatumType.I64: DatumType.U64,
}


def plain(op: binary.Binary, node: Spelling) -> str:
    """The operator of that meaning; the larger one of a number and 0 is Relu"""
    if isinstance(op, (binary.Min, binary.Max)) and node.fact().datum_type.is_float():
        for slot in (0, 1):
            bound = _bound(node.fact(1 - slot))
            if bound is not None and node.result().shape == node.fact(slot).shape:
                return _bounded(op, node, node.input(slot), bound)
    return node.add(_PLAIN[type(op)], *node.inputs)


def _bound(fact: TypedFact) -> np.generic | None:
    """The one number that a constant is."""
    known = fact.constant
    return known.reshape(-1)[0] if known is not None and known.size == 1 else None


def _bounded(op: binary.Min | binary.Max, node: Spelling, x: str, bound: np.generic) -> str:
    """Relu, or Clip"""
    scalar = node.constant(np.asarray(bound))
    if isinstance(op, binary.Max):
        return node.add("Relu", x) if bound == 0 else node.add("Clip", x, scalar)
    return node.add("Clip", x, "", scalar)


def bits(op: binary.Binary, node: Spelling) -> str | None:
    """The operator of that meaning, which there is from version 18 on"""
    return node.add(_BITS[type(op)], *node.inputs) if node.opset >= 18 else None


for _kind in _PLAIN:
    ROWS.row(ONNX_WRITE, _kind)(plain)
for _kind in _BITS:
    ROWS.row(ONNX_WRITE, _kind)(bits)


@ROWS.row(ONNX_WRITE, binary.SubF)
def sub_from(op: binary.SubF, node: Spelling) -> str:
    """Sub, the other way round"""
    return node.add("Sub", node.input(1), node.input(0))


@ROWS.row(ONNX_WRITE, binary.Ne)
def not_equal(op: binary.Ne, node: Spelling) -> str:
    """Not of Equal"""
    return node.add("Not", node.add("Equal", *node.inputs))


@ROWS.row(ONNX_WRITE, binary.Rem)
def remainder(op: binary.Rem, node: Spelling) -> str:
    """Mod, with the sign of the first"""
    return node.add("Mod", *node.inputs, fmod=1)


@ROWS.row(ONNX_WRITE, binary.FloorRem)
def floor_remainder(op: binary.FloorRem, node: Spelling) -> str:
    """Mod, which takes integers alone; of floats, a - floor(a / b) * b would round otherwise"""
    a, b = node.inputs
    if not node.fact().datum_type.is_float():
        return node.add("Mod", a, b)
    rest = node.add("Mod", a, b, fmod=1)
    zero = node.constant(0, node.fact().datum_type)
    apart = node.add("Xor", node.add("Less", rest, zero), node.add("Less", b, zero))
    moves = node.add("And", apart, node.add("Not", node.add("Equal", rest, zero)))
    return node.add("Where", moves, node.add("Add", rest, b), rest)


@ROWS.row(ONNX_WRITE, binary.ShiftLeft)
@ROWS.row(ONNX_WRITE, binary.ShiftRight)
def shift(op: binary.ShiftLeft | binary.ShiftRight, node: Spelling) -> str | None:
    """BitShift, which takes unsigned integers alone: others are seen as such; below 0, what is shifted is inverted"""
    kind = node.fact().datum_type
    direction = "LEFT" if isinstance(op, binary.ShiftLeft) else "RIGHT"
    if kind not in _UNSIGNED:
        return node.add("BitShift", *node.inputs, direction=direction)
    if node.opset < 18:
        return None
    x, count = node.input(0), node.cast(node.input(1), _UNSIGNED[kind])
    if direction == "LEFT":
        return node.cast(node.add("BitShift", node.cast(x, _UNSIGNED[kind]), count, direction=direction), kind)
    below = node.add("Less", x, node.constant(0, kind))
    magnitude = node.add("Where", below, node.add("BitwiseNot", x), x)
    made = node.cast(node.add("BitShift", node.cast(magnitude, _UNSIGNED[kind]), count, direction=direction), kind)
    return node.add("Where", below, node.add("BitwiseNot", made), made)
