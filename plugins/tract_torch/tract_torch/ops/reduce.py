"""Sums, means and extremes along axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import product
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import computed_in
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_PLACES: Final = {"argmax": Reducer.ARG_MAX_FIRST, "argmin": Reducer.ARG_MIN_FIRST}


def _axes(call: Call, wire: NodeWiring, x: OutletId) -> tuple[int, ...]:
    """The axes that are named, and all where none is."""
    rank = wire.rank(x)
    given = call.integers("dim") if call.has("dim") and rank else []
    return tuple(sorted(wire.axes(given, rank))) or tuple(range(rank))


def _without(call: Call, wire: NodeWiring, x: OutletId, axes: Sequence[int]) -> OutletId:
    """Without the axes that were reduced, unless they are to stay."""
    return x if call.flag("keepdim") else wire.squeeze(x, axes)


def _reduced(call: Call, wire: NodeWiring, x: OutletId, reducer: Reducer) -> OutletId:
    axes = _axes(call, wire, x) if wire.rank(x) else ()
    return _without(call, wire, wire.op(Reduce(axes, reducer), x), axes) if axes else x


@aten(ROWS, "aten.sum.default", "aten.sum.dim_IntList", "aten.prod.default", "aten.prod.dim_int")
def total(call: Call, wire: NodeWiring) -> OutletId:
    """The sum, or the product"""
    x = wire.cast(call.input("self"), call.kind)
    return _reduced(call, wire, x, Reducer.SUM if ".sum." in call.name else Reducer.PROD)


@aten(ROWS, "aten.mean.default", "aten.mean.dim")
def mean(call: Call, wire: NodeWiring) -> OutletId:
    """The mean"""
    x = wire.cast(call.input("self"), call.kind)
    axes = _axes(call, wire, x)
    return _without(call, wire, wire.through(wire_mean, x, axes), axes) if axes else x


@aten(ROWS, "aten.amax", "aten.amin", "aten.max.default", "aten.min.default")
def extreme(call: Call, wire: NodeWiring) -> OutletId:
    """The largest element, or the smallest one"""
    return _reduced(call, wire, call.input("self"), Reducer.MAX if "max" in call.name else Reducer.MIN)


@aten(ROWS, "aten.argmax", "aten.argmin")
def place_of_extreme(call: Call, wire: NodeWiring) -> OutletId:
    """Where the largest element is, or the smallest one: the first of them"""
    x = call.input("self")
    reducer = _PLACES["argmax" if "argmax" in call.name else "argmin"]
    if not call.has("dim"):
        x = wire.reshape(x, (wire.shape(x).volume,))
        found = wire.squeeze(wire.op(Reduce((0,), reducer), x), [0])
        return wire.reshape(found, call.shape())
    return wire.cast(_reduced(call, wire, x, reducer), DatumType.I64)


@aten(ROWS, "aten.any", "aten.all", "aten._is_any_true", "aten._is_all_true")
def any_or_all(call: Call, wire: NodeWiring) -> OutletId:
    """Whether some element is not 0, or all"""
    x = wire.cast(wire.cast(call.input("self"), DatumType.BOOL), DatumType.U8)
    found = _reduced(call, wire, x, Reducer.MAX if "any" in call.name else Reducer.MIN)
    return wire.cast(wire.cast(found, DatumType.BOOL), call.kind)


@aten(ROWS, "aten.max.dim", "aten.min.dim")
def extreme_and_place(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The largest element along an axis, or the smallest one, and where the first of them is"""
    x = call.input("self")
    if not wire.rank(x):
        return x, wire.const(np.array(0))
    is_max = ".max." in call.name
    places = wire.cast(_reduced(call, wire, x, _PLACES["argmax" if is_max else "argmin"]), DatumType.I64)
    return _reduced(call, wire, x, Reducer.MAX if is_max else Reducer.MIN), places


@aten(ROWS, "aten.var.correction", "aten.std.correction")
def variance(call: Call, wire: NodeWiring) -> Wired:
    """The sum of the squared differences to the mean, by the number of elements less a correction; or its root"""
    return _spread(call, wire)[0]


@aten(ROWS, "aten.var_mean.correction", "aten.std_mean.correction")
def variance_and_mean(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """The variance, or its root, and the mean"""
    return _spread(call, wire)


def _spread(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """The variance, or its root, and the mean, rounded once.

    As in PyTorch, squares are taken in a type that has room for them: the root may be a number where the variance is
    none of the type.
    """
    x = call.tensor("self").cast(DatumType.F32 if call.kind is DatumType.F16 else DatumType.F64)
    axes, correction = _axes(call, wire, x.outlet), 1 if call.value("correction") is None else call.value("correction")
    average = x.mean(axes)
    squares = (x - average).square()
    count = Wired(wire, wire.const(product(x.shape[axis] for axis in axes))).cast(x.dtype)
    found = squares.sum(axes) / (count - correction).maximum(0)
    found = found.sqrt() if ".std" in call.name else found
    return [Wired(wire, _without(call, wire, one.outlet, axes)).cast(call.kind) for one in (found, average)]


@aten(ROWS, "aten.linalg_vector_norm")
def vector_norm(call: Call, wire: NodeWiring) -> OutletId:
    """The root, of the order of the norm, of the sum of powers; narrow floats are computed in f32"""
    x = call.tensor("self").cast(computed_in(call.kind))
    axes = _axes(call, wire, x.outlet)
    found = norm_along(x, axes, call.number("ord"))
    return wire.cast(_without(call, wire, found.outlet, axes), call.kind)


def norm_along(x: Wired, axes: Sequence[int], order: float) -> Wired:
    """The norm of an order over axes, which keep size 1; of order 0 it is how many elements are not 0."""
    size = x.ne(0).cast(x.dtype) if order == 0 else abs(x)
    if abs(order) == inf:
        return size.max(axes) if order > 0 else size.min(axes)
    if order in (0, 1):
        return size.sum(axes)
    if order == 2:
        return x.square().sum(axes).sqrt()
    return (size**order).sum(axes) ** (1 / order)


@aten(ROWS, "aten.dist")
def distance(call: Call, wire: NodeWiring) -> Wired:
    """The norm of the difference"""
    a, b = (call.tensor(name).cast(computed_in(call.kind)) for name in ("self", "other"))
    difference = a - b
    axes = range(difference.rank)
    return norm_along(difference, axes, call.number("p")).squeeze(axes).cast(call.kind)
