"""Functions that reduce arrays along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tract_core.dims import Dim, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Sub
from tract_core.ops.cumsum import CumSum
from tract_core.ops.elementwise import Abs, Sqrt, Square
from tract_core.ops.reduce import Reduce, Reducer
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced, TracedSize


def _reduced(trace: Trace, x: OutletId, reducer: Reducer, axes: Sequence[int]) -> OutletId:
    """Along axes, which keep size 1; along none, the elements as they are."""
    return trace.wire.op(Reduce(tuple(axes), reducer), x) if axes else x


def _result(trace: Trace, found: OutletId, axes: Sequence[int], keepdims: Any) -> Traced:
    return trace.made(found if keepdims else trace.wire.squeeze(found, list(axes)))


def _count(trace: Trace, x: OutletId, axes: Sequence[int]) -> int | TracedSize:
    """How many elements become one."""
    sizes: list[Dim] = [trace.shape(x)[axis] for axis in axes]
    return TracedSize.of(trace, product(sizes))


def _summing_type(own: np.dtype[Any], dtype: Any) -> np.dtype[Any]:
    """The type in which NumPy sums: of narrow integers, the widest."""
    if dtype is not None:
        return np.dtype(dtype)
    return np.result_type(own, np.uint64 if own.kind == "u" else np.int64) if own.kind in "biu" else own


def _no_half(trace: Trace, own: np.dtype[Any], what: str) -> None:
    if own.kind != "f" or own.itemsize < 4:
        if own.kind in "iu":
            return
        trace.refuse(f"its meaning {what} {own} in {own}, which NumPy rounds in an order of its own")


def _adding(reducer: Reducer, what: str) -> Callable[..., Traced]:
    def wire(trace: Trace, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False) -> Traced:
        x = trace.array(a)
        own = _summing_type(x.dtype, dtype)
        _no_half(trace, own, what)
        outlet = trace.cast(x.outlet, own)
        axes = trace.axes(outlet, axis)
        return _result(trace, _reduced(trace, outlet, reducer, axes), axes, keepdims)

    return wire


def _extreme(reducer: Reducer, what: str) -> Callable[..., Traced]:
    def wire(trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False) -> Traced:
        x = trace.array(a)
        axes = trace.axes(x.outlet, axis)
        if axes:
            trace.not_empty(x, axes, what)
        trace.open_zeros = trace.open_zeros or x.dtype.kind == "f"
        return _result(trace, _reduced(trace, x.outlet, reducer, axes), axes, keepdims)

    return wire


def _of_truths(reducer: Reducer) -> Callable[..., Traced]:
    def wire(trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False) -> Traced:
        x = trace.outlet(trace.array(a), np.dtype(bool))
        axes = trace.axes(x, axis)
        return _result(trace, _reduced(trace, x, reducer, axes), axes, keepdims)

    return wire


def _place(reducer: Reducer, what: str) -> Callable[..., Traced]:
    def wire(trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False) -> Traced:
        x = trace.array(a)
        if axis is None:
            raise TypeError("it names no axis")
        axes = trace.axes(x.outlet, int(axis))
        trace.not_empty(x, axes, what)
        return _result(trace, _reduced(trace, x.outlet, reducer, axes), axes, keepdims)

    return wire


def _averaging_type(own: np.dtype[Any], dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The types in which NumPy averages, and which it gives: integers become f64, f16 is summed in f32."""
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if own.kind in "biu":
        return np.dtype(np.float64), np.dtype(np.float64)
    return (np.dtype(np.float32), own) if own == np.float16 else (own, own)


def _averaged(trace: Trace, x: OutletId, axes: Sequence[int], less: int = 0) -> OutletId:
    """The sum by the number of elements, less some."""
    count = _count(trace, x, axes)
    if less and isinstance(count, TracedSize):
        trace.refuse_size()
    divisor = trace.outlet(max(count - less, 0) if less else count, trace.dtype(x))
    return trace.wire.binary(Div(), _reduced(trace, x, Reducer.SUM, axes), divisor)


def _mean(trace: Trace, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False) -> Traced:
    """The sum by the number of elements."""
    x = trace.array(a)
    compute, own = _averaging_type(x.dtype, dtype)
    _no_half(trace, compute, "averages")
    outlet = trace.cast(x.outlet, compute)
    axes = trace.axes(outlet, axis)
    return _result(trace, trace.cast(_averaged(trace, outlet, axes), own), axes, keepdims)


def _variance(
    trace: Trace, a: Any, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: Any = False
) -> Traced:
    """The mean of squared distances from the mean."""
    x = trace.array(a)
    compute, own = _averaging_type(x.dtype, dtype)
    _no_half(trace, compute, "averages")
    outlet = trace.cast(x.outlet, compute)
    axes = trace.axes(outlet, axis)
    mean = _averaged(trace, outlet, axes)
    squares = trace.wire.op(Square(), trace.wire.op(Sub(), outlet, mean))
    return _result(trace, trace.cast(_averaged(trace, squares, axes, int(ddof)), own), axes, keepdims)


def _deviation(trace: Trace, a: Any, *args: Any, **kwargs: Any) -> Traced:
    """The square root of the variance."""
    return trace.ufunc(np.sqrt, (_variance(trace, a, *args, **kwargs),))


def _norm(trace: Trace, x: Any, ord: Any = None, axis: Any = None, *, keepdims: Any = False) -> Traced:  # noqa: A002
    """Of vectors: the root of the sum of squares, the sum of magnitudes, or the largest magnitude."""
    if ord is not None and not isinstance(axis, int):
        raise TypeError("it is given `ord` for no single axis")
    if ord not in (None, 1, 2, np.inf):
        raise TypeError(f"`ord` is {ord}")
    x = trace.array(x)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    size = trace.made(trace.wire.op(Abs(), x.outlet))
    if ord == np.inf:
        return trace.call(np.max, (size,), {"axis": axis, "keepdims": keepdims})
    if ord == 1:
        return trace.call(np.sum, (size,), {"axis": axis, "keepdims": keepdims})
    squares = trace.made(trace.wire.op(Square(), x.outlet))
    total = trace.call(np.sum, (squares,), {"axis": axis, "keepdims": keepdims})
    return trace.made(trace.wire.op(Sqrt(), total.outlet))


def _cumsum(trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Traced:
    """The sum of the elements up to each one."""
    if axis is None:
        raise TypeError("it names no axis")
    x = trace.array(a)
    own = _summing_type(x.dtype, dtype)
    _no_half(trace, own, "sums")
    outlet = trace.cast(x.outlet, own)
    (place,) = trace.axes(outlet, int(axis))
    return trace.made(trace.wire.op(CumSum(place), outlet))


FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.sum: _adding(Reducer.SUM, "sums"),
    np.prod: _adding(Reducer.PROD, "multiplies"),
    np.max: _extreme(Reducer.MAX, "maximum"),
    np.min: _extreme(Reducer.MIN, "minimum"),
    np.amax: _extreme(Reducer.MAX, "maximum"),
    np.amin: _extreme(Reducer.MIN, "minimum"),
    np.any: _of_truths(Reducer.ANY),
    np.all: _of_truths(Reducer.ALL),
    np.argmax: _place(Reducer.ARG_MAX_FIRST, "place of the maximum"),
    np.argmin: _place(Reducer.ARG_MIN_FIRST, "place of the minimum"),
    np.mean: _mean,
    np.var: _variance,
    np.std: _deviation,
    np.linalg.norm: _norm,
    np.cumsum: _cumsum,
}
