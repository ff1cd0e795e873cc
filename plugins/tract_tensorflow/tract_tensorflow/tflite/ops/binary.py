"""Operators on two tensors, element by element; sizes of 1 and missing axes stretch as in NumPy."""

from __future__ import annotations

from functools import reduce
from typing import Final

from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary as core
from tract_core.ops.division_wiring import divided_down
from tract_core.ops.polar_wiring import wire_atan2
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import QUANTIZED, TFLITE, TfliteFn, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_SAME: Final[dict[str, TypedOp]] = {
    "BITWISE_XOR": core.BitXor(),
    "EQUAL": core.Eq(),
    "FLOOR_MOD": core.FloorRem(),
    "GREATER": core.Gt(),
    "GREATER_EQUAL": core.Ge(),
    "LESS": core.Lt(),
    "LESS_EQUAL": core.Le(),
    "LOGICAL_AND": core.And(),
    "LOGICAL_OR": core.Or(),
    "MAXIMUM": core.Max(),
    "MINIMUM": core.Min(),
    "NOT_EQUAL": core.Ne(),
    "POW": core.Pow(),
    "RIGHT_SHIFT": core.ShiftRight(),
}
"""Operators that are one core operator."""

_ACTIVATED: Final[dict[str, TypedOp]] = {
    "ADD": core.Add(),
    "DIV": core.Div(),
    "MUL": core.Mul(),
    "SUB": core.Sub(),
}
"""Those behind which something can be fused."""


def _same(op: TypedOp) -> TfliteFn:
    def wire_same(node: TfliteNode, wire: Wiring) -> OutletId:
        return wire.binary(op, wire.input(0), wire.input(1))

    return wire_same


def _activated(op: TypedOp) -> TfliteFn:
    def wire_activated(node: TfliteNode, wire: Wiring) -> Wired:
        return activated(Wired(wire, wire.binary(op, wire.input(0), wire.input(1))), node)

    return wire_activated


for _name, _op in _SAME.items():
    ROWS.add(TFLITE, _name, _same(_op))
for _name, _op in _ACTIVATED.items():
    ROWS.add(TFLITE, _name, _activated(_op))
for _name in ("MAXIMUM", "MINIMUM"):  # the kernels compare the integers, whatever the scales are
    ROWS.add(TFLITE, QUANTIZED + _name, _same(_SAME[_name]))


@tflite_op(ROWS, "ADD_N")
def add_n(node: TfliteNode, wire: Wiring) -> OutletId:
    """The sum of all inputs"""
    return reduce(lambda a, b: wire.binary(core.Add(), a, b), wire.all_inputs())


@tflite_op(ROWS, "ATAN2")
def atan2(node: TfliteNode, wire: Wiring) -> Wired:
    """The angle of a point, whose second coordinate comes first"""
    return wire_atan2(wire.tensor(0), wire.tensor(1))


@tflite_op(ROWS, "FLOOR_DIV")
def floor_div(node: TfliteNode, wire: Wiring) -> Wired:
    """The quotient, rounded down"""
    a, b = wire.tensor(0), wire.tensor(1)
    return (a / b).floor() if a.dtype.is_float() else divided_down(a, b)


@tflite_op(ROWS, "SQUARED_DIFFERENCE")
def squared_difference(node: TfliteNode, wire: Wiring) -> Wired:
    """The square of the difference"""
    return (wire.tensor(0) - wire.tensor(1)).square()
