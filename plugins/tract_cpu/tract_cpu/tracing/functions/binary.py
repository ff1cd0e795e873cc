"""Functions of two arrays, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops.binary import (
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Div,
    Eq,
    FloorRem,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Pow,
    Rem,
    ShiftLeft,
    ShiftRight,
    Sub,
    Xor,
)
from tract_core.ops.elementwise import IsNan, PowConst, Recip, Sqrt, Square
from tract_cpu.tracing.trace import Trace

_BY_KIND: Final[Mapping[np.ufunc, Mapping[str, TypedOp]]] = {
    np.add: {"iuf": Add(), "b": Or()},
    np.subtract: {"iuf": Sub()},
    np.multiply: {"iuf": Mul(), "b": And()},
    np.true_divide: {"f": Div()},
    np.remainder: {"iuf": FloorRem()},
    np.fmod: {"iuf": Rem()},
    np.equal: {"biuf": Eq()},
    np.not_equal: {"biuf": Ne()},
    np.less: {"iuf": Lt()},
    np.less_equal: {"iuf": Le()},
    np.greater: {"iuf": Gt()},
    np.greater_equal: {"iuf": Ge()},
    np.bitwise_and: {"b": And(), "iu": BitAnd()},
    np.bitwise_or: {"b": Or(), "iu": BitOr()},
    np.bitwise_xor: {"b": Xor(), "iu": BitXor()},
    np.left_shift: {"iu": ShiftLeft()},
    np.right_shift: {"iu": ShiftRight()},
}
"""The operator that a function is, by the kinds of types that it is that on."""

_OF_TRUTHS: Final[Mapping[np.ufunc, TypedOp]] = {np.logical_and: And(), np.logical_or: Or(), np.logical_xor: Xor()}


def same_type(trace: Trace, what: str, *operands: OutletId) -> np.dtype[Any]:
    """The type of the operands. Raises NotTraced where they have several, as numbers with and without sign."""
    types = {trace.dtype(one) for one in operands}
    if len(types) > 1:
        trace.refuse(f"its meaning computes {what} of {' and '.join(sorted(map(str, types)))}, side by side")
    return types.pop()


def _by_kind(ufunc: np.ufunc, ops: Mapping[str, TypedOp]) -> Callable[..., OutletId]:
    def wire(trace: Trace, a: OutletId, b: OutletId) -> OutletId:
        own = same_type(trace, ufunc.__name__, a, b)
        op = next((op for kinds, op in ops.items() if own.kind in kinds), None)
        if op is None:
            trace.refuse(f"its meaning computes numpy.{ufunc.__name__} of {own}, which native code does otherwise")
        return trace.wire.op(op, a, b)

    return wire


def _of_truths(op: TypedOp) -> Callable[..., OutletId]:
    def wire(trace: Trace, *operands: OutletId) -> OutletId:
        return trace.wire.op(op, *(trace.cast(one, np.dtype(bool)) for one in operands))

    return wire


def extreme(op: TypedOp, of_booleans: TypedOp) -> Callable[..., OutletId]:
    """The larger or the smaller one, not a number where either is none; which of two zeros, NumPy leaves open."""

    def wire(trace: Trace, a: OutletId, b: OutletId) -> OutletId:
        own = same_type(trace, op.name.lower(), a, b)
        trace.open_zeros = trace.open_zeros or own.kind == "f"
        return trace.wire.op(of_booleans if own.kind == "b" else op, a, b)

    return wire


def _but_nan(op: TypedOp, of_booleans: TypedOp) -> Callable[..., OutletId]:
    """The larger or the smaller one; the other one where one is not a number."""
    both = extreme(op, of_booleans)

    def wire(trace: Trace, a: OutletId, b: OutletId) -> OutletId:
        found = both(trace, a, b)
        if trace.dtype(a).kind != "f":
            return found
        of_a, of_b = (trace.wire.op(IsNan(), one) for one in (a, b))
        return trace.wire.select(of_a, b, trace.wire.select(of_b, a, found))

    return wire


def _power(trace: Trace, a: OutletId, b: OutletId) -> OutletId:
    """Of powers that are one number, those that NumPy computes otherwise; no negative ones of integers."""
    own, exponent = same_type(trace, "power", a, b), trace.wire.constant(b)
    one = exponent.reshape(-1)[0].item() if exponent is not None and exponent.size == 1 else None
    rank_stays = exponent is not None and exponent.ndim <= trace.wire.rank(a)
    if own.kind == "f" and one is not None and rank_stays:
        special = {2.0: Square(), 0.5: Sqrt(), -1.0: Recip()}
        return trace.wire.op(special.get(one, PowConst(one)), a)
    if own.kind in "iu" and (exponent is None or (exponent < 0).any()) and own.kind == "i":
        trace.refuse("its meaning takes powers of integers, and NumPy refuses negative ones")
    if own.kind == "b":
        trace.refuse("its meaning takes powers of booleans")
    return trace.wire.op(Pow(), a, b)


def _floor_divide(trace: Trace, a: OutletId, b: OutletId) -> OutletId:
    """Of integers: towards zero, and one less where that is above the quotient."""
    own = same_type(trace, "floor_divide", a, b)
    if own.kind not in "iu":
        trace.refuse("its meaning calls numpy.floor_divide of floats, which native code does not know")
    wire = trace.wire
    quotient = wire.op(Div(), a, b)
    if own.kind == "u":
        return quotient
    left, zero = wire.op(Rem(), a, b), wire.scalar(0, b)
    unlike = wire.op(Xor(), wire.op(Lt(), left, zero), wire.op(Lt(), b, zero))
    above = wire.op(And(), unlike, wire.op(Ne(), left, zero))
    return wire.op(Sub(), quotient, trace.cast(above, own))


UFUNCS: Final[dict[np.ufunc, Callable[..., Any]]] = {
    **{ufunc: _by_kind(ufunc, ops) for ufunc, ops in _BY_KIND.items()},
    **{ufunc: _of_truths(op) for ufunc, op in _OF_TRUTHS.items()},
    np.maximum: extreme(Max(), Or()),
    np.minimum: extreme(Min(), And()),
    np.fmax: _but_nan(Max(), Or()),
    np.fmin: _but_nan(Min(), And()),
    np.power: _power,
    np.floor_divide: _floor_divide,
}
