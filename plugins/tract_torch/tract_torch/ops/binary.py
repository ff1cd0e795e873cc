"""Operators that combine tensors and numbers element by element, in the type that PyTorch promotes them to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary as core
from tract_core.ops.division_wiring import divided_down, is_above
from tract_core.ops.elementwise import Recip, Rsqrt, Sqrt, Square
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.polar_wiring import is_negative, ranked, wire_atan2, wire_hypot, with_sign
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import computed_in, times, towards_zero
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
    other = times(Wired(wire, call.operand("other", wire, kind)), factor)
    return wire.binary(found, call.operand("self", wire, kind), other.outlet)


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
def rsub(call: Call, wire: NodeWiring) -> Wired:
    """The second operand without ``alpha`` times the first one"""
    x, other = (Wired(wire, call.operand(name, wire, call.kind)) for name in ("self", "other"))
    return other - times(x, call.value("alpha"))


@aten(ROWS, "aten.div.Tensor", "aten.div.Scalar")
def divide(call: Call, wire: NodeWiring) -> OutletId:
    """The quotient, which is a float"""
    return _pair(call, wire, core.Div())


@aten(ROWS, "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide_and_round(call: Call, wire: NodeWiring) -> OutletId | Wired:
    """The quotient, rounded down, or towards 0, or not at all"""
    mode, kind = call.value("rounding_mode"), call.kind
    if mode is None:
        return _pair(call, wire, core.Div())
    a, b = (Wired(wire, call.operand(name, wire, computed_in(kind))) for name in ("self", "other"))
    if kind.is_float():
        return (_floor_divided(a, b) if mode == "floor" else towards_zero(a / b)).cast(kind)
    return a / b if mode == "trunc" else divided_down(a, b)


def _floor_divided(a: Wired, b: Wired) -> Wired:
    """The quotient of floats rounded down, as PyTorch and Python do it: what is left is taken off first.

    So nothing is rounded up that is a little below an integer.
    """
    a, b = ranked(a, b)
    quotient = a / b
    rest = a.op(core.Rem(), b)
    whole = (a - rest) / b - is_above(rest, b).cast(a.dtype)
    nothing = is_negative(quotient).where(a.like(-0.0), 0)
    found = whole.eq(0).where(nothing, whole.round_half_to_even())
    return b.eq(0).where(quotient, found)


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
def shift(call: Call, wire: NodeWiring) -> Wired:
    """The bits moved by so many places; by as many as there are, or fewer than none, all of them"""
    kind = call.kind
    a, b = ranked(*(Wired(wire, call.operand(name, wire, kind)) for name in ("self", "other")))
    last = b.like(8 * kind.itemsize - 1)
    outside = (b < 0) | (b > last)
    within = outside.where(last, b)
    if "left" in call.name or "lshift" in call.name:
        return outside.where(0, a.op(core.ShiftLeft(), within))
    found = a.op(core.ShiftRight(), within)  # of signed integers, all places are then the sign's
    return outside.where(0, found) if kind.is_unsigned() else found


@aten(ROWS, "aten.copysign")
def copysign(call: Call, wire: NodeWiring) -> Wired:
    """The magnitude of the one, with the sign of the other"""
    a, b = (Wired(wire, call.operand(name, wire, call.kind)) for name in ("self", "other"))
    return with_sign(abs(a), b)


def _floats(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """Both operands in the type in which floats are computed, with as many axes."""
    return ranked(*(Wired(wire, call.operand(name, wire, computed_in(call.kind))) for name in ("self", "other")))


@aten(ROWS, "aten.hypot")
def hypot(call: Call, wire: NodeWiring) -> Wired:
    """The root of the sum of both squares"""
    return wire_hypot(*_floats(call, wire)).cast(call.kind)


@aten(ROWS, "aten.atan2")
def atan2(call: Call, wire: NodeWiring) -> Wired:
    """The angle of a point, whose second coordinate comes first"""
    return wire_atan2(*_floats(call, wire)).cast(call.kind)


@aten(ROWS, "aten.fmax", "aten.fmin")
def extreme_number(call: Call, wire: NodeWiring) -> Wired:
    """The larger one of two, or the smaller one; where one is not a number, the other one"""
    a, b = ranked(*(Wired(wire, call.operand(name, wire, call.kind)) for name in ("self", "other")))
    found = a.maximum(b) if "fmax" in call.name else a.minimum(b)
    return a.is_nan().where(b, b.is_nan().where(a, found)) if call.kind.is_float() else found


@aten(ROWS, "aten.ldexp")
def ldexp(call: Call, wire: NodeWiring) -> Wired:
    """X 2^e"""
    x, exponent = _floats(call, wire)
    return (x * 2**exponent).cast(call.kind)
