"""Functions that arrange elements in other axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tract_core.dims import Dim, comparison, product, same_dim
from tract_core.ops.reshape import reshape_sizes
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced, TracedSize, listed


def dims_of(shape: Any) -> tuple[Dim, ...]:
    """Sizes that a meaning names, as those of the core."""
    return tuple(one.dim if isinstance(one, TracedSize) else int(one) for one in listed(shape))


def _in_rows(order: str | None) -> None:
    if order not in ("C", None):
        raise TypeError(f"`order` is {order!r}")


def _reshape(trace: Trace, a: Any, shape: Any = None, order: str = "C", *, copy: Any = None) -> Traced:
    """Elements keep their order; -1 stands for the size that is left over."""
    _in_rows(order)
    x = trace.array(a)
    wanted = dims_of(shape)
    if -1 in wanted:
        others = product(size for size in wanted if size != -1)
        trace.refuse_where(x, comparison(others, "==", 0), "nothing says what -1 is beside an axis of size 0")
    sizes = reshape_sizes(trace.shape(x.outlet), wanted, allow_zero=True)
    if sizes is None or same_dim(product(sizes), product(trace.shape(x.outlet))) is not True:
        trace.refuse_size()
    return trace.view(trace.wire.reshape(x.outlet, sizes), x)


def _ravel(trace: Trace, a: Any, order: str = "C") -> Traced:
    """On one axis."""
    _in_rows(order)
    x = trace.array(a)
    return trace.view(trace.wire.reshape(x.outlet, (product(trace.shape(x.outlet)),)), x)


def _arranged(trace: Trace, x: Traced, order: Sequence[int]) -> Traced:
    return trace.view(trace.wire.transpose(x.outlet, list(order)), x)


def _transpose(trace: Trace, a: Any, axes: Any = None) -> Traced:
    """The axes in another order, reversed by default."""
    x = trace.array(a)
    order = list(range(x.ndim))[::-1] if axes is None else trace.axes(x.outlet, tuple(axes))
    return _arranged(trace, x, order)


def _swapaxes(trace: Trace, a: Any, axis1: Any, axis2: Any) -> Traced:
    """Two axes, each in the place of the other."""
    x = trace.array(a)
    order = list(range(x.ndim))
    first, second = (trace.wire.axis(int(one), x.ndim) for one in (axis1, axis2))
    order[first], order[second] = second, first
    return _arranged(trace, x, order)


def _moveaxis(trace: Trace, a: Any, source: Any, destination: Any) -> Traced:
    """Axes in other places, the rest in order."""
    x = trace.array(a)
    sources, places = trace.axes(x.outlet, source), trace.axes(x.outlet, destination)
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return _arranged(trace, x, order)


def _expand_dims(trace: Trace, a: Any, axis: Any) -> Traced:
    """New axes of size 1."""
    x = trace.array(a)
    named = listed(axis)
    rank = x.ndim + len(named)
    return trace.view(trace.wire.unsqueeze(x.outlet, trace.wire.axes([int(one) for one in named], rank)), x)


def _squeeze(trace: Trace, a: Any, axis: Any = None) -> Traced:
    """Without axes of size 1."""
    x = trace.array(a)
    shape = trace.shape(x.outlet)
    axes = trace.axes(x.outlet, axis)
    answers = {place: same_dim(shape[place], 1) for place in axes}
    if None in answers.values():
        trace.refuse_size()
    if axis is not None and False in answers.values():
        raise TypeError("an axis is not of size 1")
    return trace.view(trace.wire.squeeze(x.outlet, [place for place in axes if answers[place]]), x)


def _broadcast_to(trace: Trace, array: Any, shape: Any) -> Traced:
    """Axes of size 1 repeated, missing ones added in front."""
    x, wanted = trace.array(array), dims_of(shape)
    own = (*(1,) * (len(wanted) - x.ndim), *trace.shape(x.outlet))
    if len(own) > len(wanted) or not all(one in (1, size) for one, size in zip(own, wanted, strict=True)):
        raise TypeError("it cannot be stretched so in every run")
    return trace.view(trace.wire.broadcast(x.outlet, wanted), x)


def _shape(trace: Trace, a: Any) -> tuple[int | TracedSize, ...]:
    return trace.array(a).shape


def _ndim(trace: Trace, a: Any) -> int:
    return trace.array(a).ndim


FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.reshape: _reshape,
    np.ravel: _ravel,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.broadcast_to: _broadcast_to,
    np.shape: _shape,
    np.ndim: _ndim,
}
