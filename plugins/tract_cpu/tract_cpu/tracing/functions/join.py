"""Functions that put arrays together, and cut them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tract_core.dims import exact_div
from tract_core.ops.concat import TypedConcat
from tract_core.ops.slice import Slice
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced


def _concatenate(trace: Trace, arrays: Sequence[Any], axis: Any = 0) -> Traced:
    """One behind the other."""
    own = trace.common_type(*arrays)
    outlets = [trace.outlet(one, own) for one in arrays]
    (place,) = trace.axes(outlets[0], int(axis))
    return trace.made(trace.wire.op(TypedConcat(place), *outlets))


def _stack(trace: Trace, arrays: Sequence[Any], axis: Any = 0) -> Traced:
    """One beside the other, on a new axis."""
    return _concatenate(trace, [trace.call(np.expand_dims, (one, axis), {}) for one in arrays], axis)


def _split(trace: Trace, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Traced]:
    """Parts of one size, or between places."""
    x = trace.array(ary)
    (place,) = trace.axes(x.outlet, int(axis))
    size = trace.shape(x.outlet)[place]
    if isinstance(indices_or_sections, int):
        part = exact_div(size, indices_or_sections)
        if part is None:
            trace.refuse_size()
        bounds = [part * count for count in range(indices_or_sections + 1)]
    else:
        bounds = [0, *map(int, indices_or_sections), size]
    parts = (Slice(place, begin, end) for begin, end in pairwise(bounds))
    return [trace.view(trace.wire.op(part, x.outlet), x) for part in parts]


FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.split: _split,
}
