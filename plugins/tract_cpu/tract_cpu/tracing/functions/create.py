"""Functions that make arrays like others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tract_cpu.tracing.functions.shape import dims_of
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced


def _full_like(trace: Trace, a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> Traced:
    """One number, everywhere."""
    x = trace.array(a)
    own = x.dtype if dtype is None else np.dtype(dtype)
    sizes = trace.shape(x.outlet) if shape is None else dims_of(shape)
    number = trace.outlet(fill_value if isinstance(fill_value, Traced) else np.asarray(fill_value), own)
    return trace.made(trace.wire.broadcast(number, sizes))


def _filled(number: int) -> Callable[..., Traced]:
    def wire(trace: Trace, a: Any, dtype: Any = None, *, shape: Any = None) -> Traced:
        return _full_like(trace, a, number, dtype, shape=shape)

    return wire


def _copy(trace: Trace, a: Any) -> Traced:
    """The same elements."""
    return trace.array(a).copy()


FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.full_like: _full_like,
    np.zeros_like: _filled(0),
    np.ones_like: _filled(1),
    np.copy: _copy,
}
