"""Parts of arrays: places, ranges and new axes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tract_core.dims import Dim, dim_max, dim_min, is_symbolic
from tract_core.model.graph import OutletId
from tract_core.ops.downsample import Downsample
from tract_core.ops.slice import Slice
from tract_cpu.tracing.refused import line_here
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced, TracedSize


def indexed(trace: Trace, x: Traced, key: Any) -> Traced:
    """``x[key]`` for places, ranges, ``None`` and ``...``. Raises NotTraced for arrays as indices."""
    keys: list[Any] = list(cast("tuple[Any, ...]", key)) if isinstance(key, tuple) else [key]
    for one in keys:
        if not (one is None or one is Ellipsis or isinstance(one, (slice, TracedSize)) or _is_place(one)):
            trace.refuse(f"its meaning picks elements by an array: {line_here()}")
    taken = sum(one is not None and one is not Ellipsis for one in keys)
    if not any(one is Ellipsis for one in keys):
        keys.append(Ellipsis)
    gap = next(place for place, one in enumerate(keys) if one is Ellipsis)
    keys[gap : gap + 1] = [cast("Any", slice(None))] * (x.ndim - taken)
    outlet, axis = x.outlet, 0
    for one in keys:
        if one is None:
            outlet = trace.wire.unsqueeze(outlet, [axis])
        elif isinstance(one, slice):
            outlet = _range(trace, outlet, axis, cast("slice[Any, Any, Any]", one))
        else:
            outlet = _at(trace, outlet, axis, one)
        axis += one is None or isinstance(one, slice)
    return trace.view(outlet, x)


def _is_place(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, bool)


def _at(trace: Trace, x: OutletId, axis: int, place: Any) -> OutletId:
    """One position, counted from the end where it is negative. Raises IndexError where the axis ends before."""
    size = trace.shape(x)[axis]
    if isinstance(place, TracedSize) or is_symbolic(size):
        trace.refuse_size()
    begin = int(place) + (int(size) if place < 0 else 0)
    if not 0 <= begin < int(size):
        raise IndexError(f"index {place} is out of bounds for axis {axis} with size {size}")
    return trace.wire.squeeze(trace.wire.op(Slice(axis, begin, begin + 1), x), [axis])


def _range(trace: Trace, x: OutletId, axis: int, part: slice) -> OutletId:
    size = trace.shape(x)[axis]
    step = 1 if part.step is None else int(part.step)
    if step < 1 and (part.start is not None or part.stop is not None or step == 0):
        trace.refuse(f"its meaning goes backwards between two places: {line_here()}")
    begin, end = _bound(part.start, 0, size), _bound(part.stop, size, size)
    end = dim_max(begin, end)
    if (begin, end) != (0, size):
        x = trace.wire.op(Slice(axis, begin, end), x)
    return x if step == 1 else trace.wire.op(Downsample(axis, step), x)


def _bound(bound: Any, default: Dim, size: Dim) -> Dim:
    """A bound of a range, inside the axis."""
    if bound is None:
        return default
    dim = bound.dim if isinstance(bound, TracedSize) else int(bound)
    if isinstance(dim, int) and dim < 0:
        return dim_max(size + dim, 0)
    return dim_min(dim, size)
