"""Functions of one array, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops.binary import Or
from tract_core.ops.elementwise import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    BitNot,
    Ceil,
    Cos,
    Cosh,
    Exp,
    Floor,
    IsInf,
    IsNan,
    Ln,
    Neg,
    Not,
    Recip,
    RoundHalfToEven,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Square,
    Tan,
    Tanh,
)
from tract_cpu.tracing.trace import Trace

_OF_FLOATS: Final[dict[np.ufunc, TypedOp]] = {
    np.exp: Exp(),
    np.log: Ln(),
    np.sqrt: Sqrt(),
    np.reciprocal: Recip(),
    np.rint: RoundHalfToEven(),
    np.cos: Cos(),
    np.sin: Sin(),
    np.tan: Tan(),
    np.arccos: Acos(),
    np.arcsin: Asin(),
    np.arctan: Atan(),
    np.cosh: Cosh(),
    np.sinh: Sinh(),
    np.tanh: Tanh(),
    np.arccosh: Acosh(),
    np.arcsinh: Asinh(),
    np.arctanh: Atanh(),
    np.fabs: Abs(),
    np.isnan: IsNan(),
    np.isinf: IsInf(),
}
"""Functions of floats alone; of integers, NumPy has them in another way, or in floats, which it says itself."""

_OF_NUMBERS: Final[dict[np.ufunc, TypedOp]] = {
    np.absolute: Abs(),
    np.negative: Neg(),
    np.square: Square(),
    np.sign: Sign(),
}

_WHOLE: Final[dict[np.ufunc, TypedOp]] = {np.floor: Floor(), np.ceil: Ceil()}
"""Functions that are of floats, and leave integers as they are."""


def plain(op: TypedOp, kinds: str) -> Callable[..., OutletId]:
    """One operator, on types of these kinds."""

    def wire(trace: Trace, *operands: OutletId) -> OutletId:
        kind = trace.dtype(operands[0])
        if kind.kind not in kinds:
            trace.refuse(f"its meaning computes {op.name.lower()} of {kind}, which native code does otherwise")
        return trace.wire.op(op, *operands)

    return wire


def _whole(op: TypedOp) -> Callable[..., OutletId]:
    def wire(trace: Trace, x: OutletId) -> OutletId:
        return trace.wire.op(op, x) if trace.dtype(x).kind == "f" else x

    return wire


def _positive(trace: Trace, x: OutletId) -> OutletId:
    """The array itself."""
    return x


def _invert(trace: Trace, x: OutletId) -> OutletId:
    """Every bit inverted, of booleans the one that there is."""
    return trace.wire.op(Not() if trace.dtype(x).kind == "b" else BitNot(), x)


def _logical_not(trace: Trace, x: OutletId) -> OutletId:
    """Whether it is zero."""
    return trace.wire.op(Not(), trace.cast(x, np.dtype(bool)))


def _isfinite(trace: Trace, x: OutletId) -> OutletId:
    """Neither infinite nor not a number."""
    if trace.dtype(x).kind != "f":
        trace.refuse("its meaning asks of integers whether they are finite")
    wire = trace.wire
    return wire.op(Not(), wire.op(Or(), wire.op(IsNan(), x), wire.op(IsInf(), x)))


UFUNCS: Final[dict[np.ufunc, Callable[..., Any]]] = {
    **{ufunc: plain(op, "f") for ufunc, op in _OF_FLOATS.items()},
    **{ufunc: plain(op, "iuf") for ufunc, op in _OF_NUMBERS.items()},
    **{ufunc: _whole(op) for ufunc, op in _WHOLE.items()},
    np.positive: _positive,
    np.invert: _invert,
    np.logical_not: _logical_not,
    np.isfinite: _isfinite,
}
