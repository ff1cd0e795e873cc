"""Functions that choose between arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tract_core.ops.binary import And, Max, Min, Or
from tract_cpu.tracing.functions.binary import extreme
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced

_AT_LEAST, _AT_MOST = extreme(Max(), Or()), extreme(Min(), And())


def _where(trace: Trace, condition: Any, x: Any = None, y: Any = None) -> Traced:
    """``x`` where the condition holds, else ``y``."""
    if x is None or y is None:
        raise TypeError("it names no values")
    own = trace.common_type(x, y)
    chosen = (trace.outlet(one, own) for one in (x, y))
    return trace.made(trace.wire.select(trace.outlet(trace.array(condition), np.dtype(bool)), *chosen))


def _clip(trace: Trace, a: Any, a_min: Any = None, a_max: Any = None, **named: Any) -> Traced:
    """At least ``a_min``, then at most ``a_max``, or ``min`` and ``max``; not a number where one of them is none."""
    low, high = named.pop("min", a_min), named.pop("max", a_max)
    if named:
        raise TypeError(f"it is given `{next(iter(named))}`")
    own = trace.common_type(*(one for one in (a, low, high) if one is not None))
    found = trace.outlet(a, own)
    for bound, row in ((low, _AT_LEAST), (high, _AT_MOST)):
        if bound is not None:
            found = row(trace, *trace.wire.ranks(found, trace.outlet(bound, own)))
    return trace.made(found)


def _round(trace: Trace, a: Any, decimals: int = 0) -> Traced:
    """The nearest integer, halves to the even one."""
    x = trace.array(a)
    if decimals:
        raise TypeError(f"`decimals` is {decimals}")
    return x.copy() if x.dtype.kind in "iu" else trace.ufunc(np.rint, (x,))


def _nan_to_num(trace: Trace, x: Any, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Traced:
    """Numbers in the place of what is not a number, and of infinities."""
    x = trace.array(x)
    if x.dtype.kind != "f":
        return x.copy()
    ends = np.finfo(x.dtype)
    high, low = (ends.max if posinf is None else posinf), (ends.min if neginf is None else neginf)
    found = _where(trace, trace.ufunc(np.equal, (x, np.inf)), x.dtype.type(high), x)
    found = _where(trace, trace.ufunc(np.equal, (x, -np.inf)), x.dtype.type(low), found)
    return _where(trace, trace.ufunc(np.isnan, (x,)), x.dtype.type(nan), found)


FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.where: _where,
    np.clip: _clip,
    np.round: _round,
    np.around: _round,
    np.nan_to_num: _nan_to_num,
}
