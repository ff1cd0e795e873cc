"""Operators that combine tensors and numbers element by element, in the type that PyTorch promotes them to."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary as core
from tract_core.ops.elementwise import RoundHalfToEven
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.ops.elementwise import times, towards_zero
from tract_torch.registry import ATEN, AtenFn, aten

ROWS = Rows()

_OPS: Final[dict[str, TypedOp]] = {
    "maximum": core.Max(),
    "minimum": core.Min(),
    **{
        f"{name}.{end}": op
        for name, op in {
            "mul": core.Mul(),
            "fmod": core.Rem(),
            "remainder": core.FloorRem(),
            "bitwise_and": core.BitAnd(),
            "bitwise_or": core.BitOr(),
            "bitwise_xor": core.BitXor(),
        }.items()
        for end in ("Tensor", "Scalar")
    },
}
"""Operators that are one operator of the core, on operands in the type of the result."""

_COMPARISONS: Final[dict[str, TypedOp]] = {
    "eq": core.Eq(),
    "ge": core.Ge(),
    "gt": core.Gt(),
    "le": core.Le(),
    "lt": core.Lt(),
    "ne": core.Ne(),
}

_LOGICAL: Final[dict[str, TypedOp]] = {"and": core.And(), "or": core.Or(), "xor": core.Xor()}
_OF_BOOLEANS: Final[dict[type[TypedOp], TypedOp]] = {
    core.BitAnd: core.And(),
    core.BitOr: core.Or(),
    core.BitXor: core.Xor(),
    core.Mul: core.And(),
    core.Add: core.Or(),
}
"""What operators are on booleans."""


def _wired(op: TypedOp) -> AtenFn:
    def wire_pair(call: Call, wire: NodeWiring) -> OutletId:
        return _pair(call, wire, op)

    return wire_pair


def _pair(call: Call, wire: NodeWiring, op: TypedOp, factor: float = 1) -> OutletId:
    """The operator on both operands, of which the second is multiplied by a number."""
    kind = call.kind
    found = _OF_BOOLEANS.get(type(op), op) if kind is DatumType.BOOL else op
    return wire.binary(found, call.operand("self", wire, kind), times(wire, call.operand("other", wire, kind), factor))


def _compared(op: TypedOp) -> AtenFn:
    def wire_comparison(call: Call, wire: NodeWiring) -> OutletId:
        kind = call.common_kind("self", "other")
        return wire.binary(op, call.operand("self", wire, kind), call.operand("other", wire, kind))

    return wire_comparison


def _logical(op: TypedOp) -> AtenFn:
    def wire_logical(call: Call, wire: NodeWiring) -> OutletId:
        a, b = (call.operand(name, wire, DatumType.BOOL) for name in ("self", "other"))
        return wire.binary(op, a, b)

    return wire_logical


for _name, _op in _OPS.items():
    ROWS.add(ATEN, f"aten.{_name}", _wired(_op))
for _name, _op in _COMPARISONS.items():
    for _end in ("Tensor", "Scalar"):
        ROWS.add(ATEN, f"aten.{_name}.{_end}", _compared(_op))
for _name, _op in _LOGICAL.items():
    ROWS.add(ATEN, f"aten.logical_{_name}", _logical(_op))


@aten(ROWS, "aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar")
def add(call: Call, wire: NodeWiring) -> OutletId:
    """The sum or the difference of one operand and ``alpha`` times the other"""
    return _pair(call, wire, core.Add() if ".add." in call.name else core.Sub(), call.value("alpha"))


@aten(ROWS, "aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(call: Call, wire: NodeWiring) -> OutletId:
    """The second operand without ``alpha`` times the first one"""
    x = times(wire, call.operand("self", wire, call.kind), call.value("alpha"))
    return wire.binary(core.Sub(), call.operand("other", wire, call.kind), x)


@aten(ROWS, "aten.div.Tensor", "aten.div.Scalar")
def divide(call: Call, wire: NodeWiring) -> OutletId:
    """The quotient, which is a float"""
    return _pair(call, wire, core.Div())


@aten(ROWS, "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide_and_round(call: Call, wire: NodeWiring) -> OutletId:
    """The quotient, rounded down, or towards 0, or not at all"""
    mode, kind = call.value("rounding_mode"), call.kind
    if mode is None:
        return _pair(call, wire, core.Div())
    a, b = (call.operand(name, wire, kind) for name in ("self", "other"))
    if kind.is_float():
        if mode == "floor":  # as PyTorch does it: what is left is taken off first, so that nothing is rounded up
            rest = wire.binary(core.FloorRem(), a, b)
            return wire.op(RoundHalfToEven(), wire.binary(core.Div(), wire.binary(core.Sub(), a, rest), b))
        return towards_zero(wire, wire.binary(core.Div(), a, b))
    if mode == "trunc":
        return wire.binary(core.Div(), a, b)
    return wire.binary(core.Div(), wire.binary(core.Sub(), a, wire.binary(core.FloorRem(), a, b)), b)


@aten(ROWS, "aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def power(call: Call, wire: NodeWiring) -> OutletId:
    """The first operand to the power of the second one"""
    kind = call.kind
    return wire.binary(core.Pow(), call.operand("self", wire, kind), call.operand("exponent", wire, kind))


@aten(ROWS, "aten.bitwise_left_shift", "aten.bitwise_right_shift")
def shift(call: Call, wire: NodeWiring) -> OutletId:
    """The bits moved by so many places"""
    kind = call.kind
    if not kind.is_unsigned() and "right" in call.name:
        raise Unsupported("shifts of signed integers to the right", hint="divide, rounding down")
    op = core.ShiftLeft() if "left" in call.name else core.ShiftRight()
    return wire.binary(op, call.operand("self", wire, kind), call.operand("other", wire, kind))
