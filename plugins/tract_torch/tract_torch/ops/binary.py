"""Operators that combine tensors and numbers element by element, in the type that PyTorch promotes them to."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, pi
from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary as core
from tract_core.ops.elementwise import Abs, Atan, IsNan, Neg, Recip, RoundHalfToEven, Rsqrt, Sqrt, Square
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import computed_in, is_negative, times, towards_zero
from tract_torch.registry import ATEN, AtenFn, aten
from tract_torch.wiring.call import Call

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
    "remainder.Scalar_Tensor": core.FloorRem(),
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
        if kind is DatumType.BOOL and type(op) not in {core.Eq, core.Ne}:
            kind = DatumType.U8  # truth values have an order: false is less than true
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
    a, b = (call.operand(name, wire, computed_in(kind)) for name in ("self", "other"))
    if kind.is_float():
        found = _floor_divided(wire, a, b) if mode == "floor" else towards_zero(wire, wire.binary(core.Div(), a, b))
        return wire.cast(found, kind)
    if mode == "trunc":
        return wire.binary(core.Div(), a, b)
    return divided_down(wire, a, b)


def divided_down(wire: NodeWiring, a: OutletId, b: OutletId) -> OutletId:
    """The quotient of integers, rounded down: one less than towards 0 where something is left and it is negative."""
    a, b = wire.ranks(a, b)
    quotient = wire.op(core.Div(), a, b)
    if not wire.dtype(a).is_signed():
        return quotient
    rest, zero = wire.op(core.Rem(), a, b), wire.scalar(0, a)
    signs_differ = wire.op(core.Xor(), wire.op(core.Lt(), b, zero), wire.op(core.Lt(), rest, zero))
    below = wire.op(core.And(), wire.op(core.Ne(), rest, zero), signs_differ)
    return wire.op(core.Sub(), quotient, wire.cast(below, wire.dtype(a)))


def _floor_divided(wire: NodeWiring, a: OutletId, b: OutletId) -> OutletId:
    """The quotient of floats rounded down, as PyTorch and Python do it: what is left is taken off first.

    So nothing is rounded up that is a little below an integer.
    """
    a, b = wire.ranks(a, b)
    quotient, zero = wire.op(core.Div(), a, b), wire.scalar(0, a)
    rest = wire.op(core.Rem(), a, b)
    whole = wire.op(core.Div(), wire.op(core.Sub(), a, rest), b)
    signs_differ = wire.op(core.Xor(), wire.op(core.Lt(), b, zero), wire.op(core.Lt(), rest, zero))
    below = wire.op(core.And(), wire.op(core.Ne(), rest, zero), signs_differ)
    whole = wire.op(core.Sub(), whole, wire.cast(below, wire.dtype(a)))
    nothing = wire.select(is_negative(wire, quotient), wire.scalar(-0.0, a), zero)
    found = wire.select(wire.op(core.Eq(), whole, zero), nothing, wire.op(RoundHalfToEven(), whole))
    return wire.select(wire.op(core.Eq(), b, zero), quotient, found)


_POWERS: Final[dict[float, TypedOp]] = {0.5: Sqrt(), -0.5: Rsqrt(), 2: Square(), -1: Recip()}
"""Powers of floats that PyTorch computes in another way, which differs at -0.0 and at minus infinity."""


@aten(ROWS, "aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def power(call: Call, wire: NodeWiring) -> OutletId:
    """The first operand to the power of the second one"""
    kind = call.kind
    x = call.operand("self", wire, kind)
    known = call.value("exponent") if "Tensor_Scalar" in call.name else None
    if kind.is_float() and known in _POWERS:
        return wire.op(_POWERS[known], x)
    return wire.binary(core.Pow(), x, call.operand("exponent", wire, kind))


_SHIFTS: Final = (
    *(f"aten.bitwise_{side}_shift" for side in ("left", "right")),
    *(f"aten.__{side}shift__" for side in ("l", "r")),
)


@aten(ROWS, *_SHIFTS)
def shift(call: Call, wire: NodeWiring) -> OutletId:
    """The bits moved by so many places; by as many as there are, or fewer than none, all of them"""
    kind = call.kind
    a, b = wire.ranks(*(call.operand(name, wire, kind) for name in ("self", "other")))
    last = wire.scalar(8 * kind.itemsize - 1, b)
    outside = wire.op(core.Or(), wire.op(core.Lt(), b, wire.scalar(0, b)), wire.op(core.Gt(), b, last))
    within, nothing = wire.select(outside, last, b), wire.scalar(0, a)
    if "left" in call.name or "lshift" in call.name:
        return wire.select(outside, nothing, wire.op(core.ShiftLeft(), a, within))
    found = wire.op(core.ShiftRight(), a, within)  # of signed integers, all places are then the sign's
    return wire.select(outside, nothing, found) if kind.is_unsigned() else found


@aten(ROWS, "aten.copysign")
def copysign(call: Call, wire: NodeWiring) -> OutletId:
    """The magnitude of the one, with the sign of the other"""
    a, b = (call.operand(name, wire, call.kind) for name in ("self", "other"))
    return with_sign(wire, wire.op(Abs(), a), b)


def with_sign(wire: NodeWiring, magnitude: OutletId, x: OutletId) -> OutletId:
    """A magnitude with the sign of ``x``."""
    magnitude, x = wire.ranks(magnitude, x)
    return wire.select(is_negative(wire, x), wire.op(Neg(), magnitude), magnitude)


def _floats(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """Both operands in the type in which floats are computed, with as many axes."""
    return wire.ranks(*(call.operand(name, wire, computed_in(call.kind)) for name in ("self", "other")))


@aten(ROWS, "aten.hypot")
def hypot(call: Call, wire: NodeWiring) -> OutletId:
    """The root of the sum of both squares"""
    return wire.cast(wire_hypot(wire, *_floats(call, wire)), call.kind)


def wire_hypot(wire: NodeWiring, a: OutletId, b: OutletId) -> OutletId:
    """The root of the sum of both squares; the larger one is taken out, so that no square leaves the type."""
    a, b = (wire.op(Abs(), x) for x in (a, b))
    most, least = wire.op(core.Max(), a, b), wire.op(core.Min(), a, b)
    one, zero, endless = (wire.scalar(value, a) for value in (1, 0, inf))
    ratio = wire.op(core.Div(), least, wire.select(wire.op(core.Eq(), most, zero), one, most))
    found = wire.op(core.Mul(), most, wire.op(Sqrt(), wire.op(core.Add(), one, wire.op(Square(), ratio))))
    is_endless = wire.op(core.Or(), *(wire.op(core.Eq(), x, endless) for x in (a, b)))
    return wire.select(is_endless, endless, found)


@aten(ROWS, "aten.atan2")
def atan2(call: Call, wire: NodeWiring) -> OutletId:
    """The angle of a point, whose second coordinate comes first"""
    return wire.cast(wire_atan2(wire, *_floats(call, wire)), call.kind)


def wire_atan2(wire: NodeWiring, y: OutletId, x: OutletId) -> OutletId:
    """The angle of a point, between -pi and pi."""
    high, wide = wire.op(Abs(), y), wire.op(Abs(), x)
    most, least = wire.op(core.Max(), high, wide), wire.op(core.Min(), high, wide)
    one, zero, endless = (wire.scalar(value, x) for value in (1, 0, inf))
    ratio = wire.op(core.Div(), least, wire.select(wire.op(core.Eq(), most, zero), one, most))
    ratio = wire.select(wire.op(core.Eq(), least, endless), one, ratio)  # both are infinite
    angle = wire.op(Atan(), ratio)
    angle = wire.select(wire.op(core.Gt(), high, wide), wire.op(core.Sub(), wire.scalar(pi / 2, x), angle), angle)
    angle = wire.select(is_negative(wire, x), wire.op(core.Sub(), wire.scalar(pi, x), angle), angle)
    return with_sign(wire, angle, y)


@aten(ROWS, "aten.fmax", "aten.fmin")
def extreme_number(call: Call, wire: NodeWiring) -> OutletId:
    """The larger one of two, or the smaller one; where one is not a number, the other one"""
    a, b = wire.ranks(*(call.operand(name, wire, call.kind) for name in ("self", "other")))
    found = wire.op(core.Max() if "fmax" in call.name else core.Min(), a, b)
    if not call.kind.is_float():
        return found
    return wire.select(wire.op(IsNan(), a), b, wire.select(wire.op(IsNan(), b), a, found))


@aten(ROWS, "aten.ldexp")
def ldexp(call: Call, wire: NodeWiring) -> OutletId:
    """X 2^e"""
    x, exponent = _floats(call, wire)
    return wire.cast(wire.op(core.Mul(), x, wire.op(core.Pow(), wire.scalar(2, x), exponent)), call.kind)
