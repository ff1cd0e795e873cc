"""Functions of floats that are made of several operators, as exact as those."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops.binary import Add, Div, Eq, Gt, Lt, Mul, Ne, Sub
from tract_core.ops.elementwise import Abs, Ceil, Exp, Floor, IsInf, Ln, Neg
from tract_cpu.tracing.functions.binary import same_type
from tract_cpu.tracing.trace import Trace


class _Terms:
    """Operators on outlets of one rank, and numbers."""

    def __init__(self, trace: Trace) -> None:
        self.wire = trace.wire

    def __call__(self, op: TypedOp, *operands: OutletId | float) -> OutletId:
        like = next(one for one in operands if isinstance(one, OutletId))
        return self.wire.op(op, *(self.number(one, like) for one in operands))

    def number(self, value: OutletId | float, like: OutletId) -> OutletId:
        return value if isinstance(value, OutletId) else self.wire.scalar(value, like)

    def select(self, condition: OutletId, if_true: OutletId | float, if_false: OutletId | float) -> OutletId:
        like = next(one for one in (if_true, if_false) if isinstance(one, OutletId))
        return self.wire.select(condition, self.number(if_true, like), self.number(if_false, like))


def _log1p(trace: Trace, x: OutletId) -> OutletId:
    """ln(u) * x / (u - 1) with u = 1 + x rounded, whose error both take part in (W. Kahan)."""
    t = _Terms(trace)

    def compute(x: OutletId) -> OutletId:
        u = t(Add(), x, 1.0)
        ln = t(Ln(), u)
        near = t(Mul(), ln, t(Div(), x, t(Sub(), u, 1.0)))
        return t.select(t(Eq(), u, 1.0), x, t.select(t(IsInf(), u), ln, near))

    return trace.in_wide(x, compute)


def _expm1(trace: Trace, x: OutletId) -> OutletId:
    """(u - 1) * x / ln(u) with u = exp(x) rounded, whose error both take part in (W. Kahan)."""
    t = _Terms(trace)

    def compute(x: OutletId) -> OutletId:
        u = t(Exp(), x)
        less = t(Sub(), u, 1.0)
        near = t(Mul(), less, t(Div(), x, t(Ln(), u)))
        edge = t.select(t(Eq(), less, -1.0), -1.0, t.select(t(IsInf(), u), u, near))
        return t.select(t(Eq(), u, 1.0), x, edge)

    return trace.in_wide(x, compute)


def _logaddexp(trace: Trace, a: OutletId, b: OutletId) -> OutletId:
    """The larger one and log1p(exp(-|a - b|)); where both are equal, as infinities, twice the number."""
    t, own = _Terms(trace), same_type(trace, "logaddexp", a, b)

    def compute(difference: OutletId) -> OutletId:
        high, low = trace.cast(a, trace.dtype(difference)), trace.cast(b, trace.dtype(difference))
        larger = t.select(t(Gt(), high, low), high, low)
        more = _log1p(trace, t(Exp(), t(Neg(), t(Abs(), difference))))
        apart = t.select(t(Ne(), difference, difference), difference, t(Add(), larger, more))
        return t.select(t(Eq(), high, low), t(Add(), high, math.log(2)), apart)

    wide = np.dtype(np.float32) if own.itemsize < 4 else own
    difference = t(Sub(), trace.cast(a, wide), trace.cast(b, wide))
    return trace.cast(compute(difference), own)


def _trunc(trace: Trace, x: OutletId) -> OutletId:
    """Towards zero, whose sign stays."""
    if trace.dtype(x).kind != "f":
        return x
    t = _Terms(trace)
    return t.select(t(Lt(), x, 0.0), t(Ceil(), x), t(Floor(), x))


def _heaviside(trace: Trace, x: OutletId, at_zero: OutletId) -> OutletId:
    """0 below zero, 1 above, ``at_zero`` there; what is not a number stays."""
    t = _Terms(trace)
    above = t.select(t(Gt(), x, 0.0), t.number(1.0, x), t.select(t(Eq(), x, 0.0), at_zero, x))
    return t.select(t(Lt(), x, 0.0), t.number(0.0, x), above)


def _times(factor: float) -> Callable[..., OutletId]:
    def wire(trace: Trace, x: OutletId) -> OutletId:
        return trace.wire.op(Mul(), x, trace.wire.scalar(factor, x))

    return wire


UFUNCS: Final[dict[np.ufunc, Callable[..., Any]]] = {
    np.log1p: _log1p,
    np.expm1: _expm1,
    np.logaddexp: _logaddexp,
    np.trunc: _trunc,
    np.heaviside: _heaviside,
    np.deg2rad: _times(math.pi / 180),
    np.radians: _times(math.pi / 180),
    np.rad2deg: _times(180 / math.pi),
    np.degrees: _times(180 / math.pi),
}
