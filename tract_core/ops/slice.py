"""Take a range of an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from tract_core.data import DatumType
from tract_core.dims import Dim, comparison, dim_max, dim_min, is_symbolic, symbols_of
from tract_core.dims.theory import Theory
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Lt, Max, Min
from tract_core.ops.downsample import Downsample
from tract_core.ops.expect import arity, axis_in, integers, scalar
from tract_core.ops.iff import Iff
from tract_core.ops.wiring import fresh_size, wire_cast, wire_one
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

TO_THE_END: Final = 2**31 - 1
"""A bound at least this far from 0 stands for an end of the axis."""


@frozen
class Slice(TypedOp):
    """The elements from ``start`` up to and without ``end`` on ``axis``, where ``0 <= start <= end <= size``."""

    axis: int
    start: Dim
    end: Dim
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``end - start`` elements on the axis. Raises FactError for a range that cannot lie inside the input."""
        (x,) = arity(self, inputs, 1)
        size = x.shape[axis_in(self, self.axis, x.rank)]
        inside = may_be_at_most(0, self.start), may_be_at_most(self.start, self.end), may_be_at_most(self.end, size)
        if not all(inside):
            raise FactError(
                f"Slice: {self.start} to {self.end} is no range of axis {self.axis}, of size {size}, of {x}",
                hint="a start or end that is negative or too large is made right by wire_slice",
            )
        return (_with_size(x, self.axis, self.end - self.start),)


@frozen
class DynSlice(TypedOp):
    """Like `Slice`, with start and end as inputs of rank 0. ``length``: what ``end - start`` will be.

    ``axis``: the one that is cut.
    """

    axis: int
    length: Dim
    announces: ClassVar[tuple[str, ...]] = ("length",)
    judges: ClassVar[tuple[int, ...]] = (1, 2)
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``length`` elements on the axis. Raises FactError when the bounds are not integers of rank 0."""
        x, start, end = arity(self, inputs, 3)
        axis_in(self, self.axis, x.rank)
        scalar(self, integers(self, start, "start"), "start")
        scalar(self, integers(self, end, "end"), "end")
        return (_with_size(x, self.axis, self.length),)


def _with_size(x: TypedFact, axis: int, size: Dim) -> TypedFact:
    return x.with_shape((*x.shape[:axis], size, *x.shape[axis + 1 :]))


@ROWS.row(REFERENCE, Slice)
@ROWS.row(SYMBOLIC, Slice)
def static_slice(op: Slice, x: Array) -> Array:
    """x[start:end] on the axis"""
    return _take(op, x, int(op.start), int(op.end))


@ROWS.row(REFERENCE, DynSlice)
@ROWS.row(SYMBOLIC, DynSlice)
def dyn_slice(op: DynSlice, x: Array, start: Array, end: Array) -> Array:
    """x[start:end] on the axis"""
    return _take(op, x, int(start), int(end))


def check_range(axis: int, size: int, start: int, end: int) -> None:
    """Raises RunError unless there is such a range on an axis of a size."""
    if not 0 <= start <= end <= size:
        raise RunError(f"{start} to {end} is no range of axis {axis}, which has size {size}")


def _take(op: Slice | DynSlice, x: Array, start: int, end: int) -> Array:
    check_range(op.axis, x.shape[op.axis], start, end)
    return x[(slice(None),) * op.axis + (slice(start, end),)]


@ROWS.row(COST, Slice, DynSlice)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Slice, DynSlice)
def axes(op: Slice | DynSlice, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one that is cut, which is disconnected."""
    return AxesMapping.natural_but([fact.rank for fact in inputs], [outputs[0].rank], [op.axis])


def wire_slice(
    model: TypedModel, name: str, x: OutletId, axis: int, *, start: Dim | None, end: Dim | None, step: int = 1
) -> OutletId:
    """``x[start:end:step]`` on an axis, as Python means it.

    Bounds that are negative count from the end, bounds outside stop at the ends, ``None`` is everything on that side.
    A bound that is a size of another axis is taken to be inside where only a run can tell; a run in which it is not is
    refused. Raises FactError for a step of 0.
    """
    size = model.outlet_fact(x).shape[axis]
    low, high = (start, end) if step > 0 else (end, start)
    first: Dim = 0 if low is None else _place(model, low, size, shift=int(step < 0))
    last: Dim = size if high is None else _place(model, high, size, shift=int(step < 0))
    exact = all(bound is None or _goes_with(model.known, bound, size) for bound in (start, end))
    first, last = (_range if exact else _taken_inside)(model.known, first, last, size)
    if (first, last) != (0, size):
        x = wire_one(model, name if step == 1 else f"{name}.slice", Slice(axis, first, last), x)
    return x if step == 1 else wire_one(model, name, Downsample(axis, step), x)


def _goes_with(known: Theory, bound: Dim, size: Dim) -> bool:
    """Whether a bound is a number, or a place on an axis of ``size`` that is not before its start."""
    return not is_symbolic(bound) or (symbols_of(bound) <= symbols_of(size) and bool(known.less_or_equal(0, bound)))


def _place(model: TypedModel, bound: Dim, size: Dim, *, shift: int) -> Dim:
    """A bound counted from the front. ``shift``: 1 where the steps go backwards."""
    if not is_symbolic(bound) and abs(int(bound)) >= TO_THE_END:
        return size if int(bound) > 0 else 0
    return _from_front(model, bound, size) + shift


def _range(known: Theory, first: Dim, last: Dim, size: Dim) -> tuple[Dim, Dim]:
    """The part of ``first`` to ``last`` that lies between 0 and ``size``, with its length in a simple form."""
    inside = _smaller(known, last - first, size - first)
    last = _smaller(known, last, size)
    length = _larger(known, 0, inside if known.less_or_equal(0, first) else _smaller(known, inside, last))
    if length == 0:
        return 0, 0
    first = _larger(known, 0, first)
    if known.less_or_equal(first, size):
        return first, first + length
    last = _larger(known, 0, last)
    return last - length, last


def _taken_inside(known: Theory, first: Dim, last: Dim, size: Dim) -> tuple[Dim, Dim]:
    first, last = (
        0 if known.less_or_equal(place, 0) else size if known.less_or_equal(size, place) else place
        for place in (first, last)
    )
    return (0, 0) if last == 0 or first == size or known.less_or_equal(last, first) else (first, last)


def _smaller(known: Theory, a: Dim, b: Dim) -> Dim:
    return known.simplify(dim_min(a, b))


def _larger(known: Theory, a: Dim, b: Dim) -> Dim:
    return known.simplify(dim_max(a, b))


def _from_front(model: TypedModel, bound: Dim, size: Dim) -> Dim:
    if model.known.less_or_equal(0, bound):
        return bound
    if model.known.less_or_equal(bound, -1):
        return bound + size
    if model.known.less_or_equal(bound, 0):
        return bound + size * comparison(bound, "<", 0)
    return bound


def wire_dyn_slice(
    model: TypedModel, name: str, x: OutletId, axis: int, *, start: OutletId, end: OutletId, step: int = 1
) -> OutletId:
    """Like `wire_slice`, with bounds that may be computed: integers of rank 0. Every case is decided in the run."""
    known = [model.outlet_fact(bound).dims for bound in (start, end)]
    if known[0] is not None and known[1] is not None:
        return wire_slice(model, name, x, axis, start=known[0][0], end=known[1][0], step=step)
    size = model.add_const(f"{name}.size", model.outlet_fact(x).shape[axis])
    low, high = (start, end) if step > 0 else (end, start)
    first = _wire_inside(model, f"{name}.start", low, size, shift=int(step < 0))
    last = _wire_inside(model, f"{name}.end", high, size, shift=int(step < 0))
    last = wire_one(model, f"{name}.order", Max(), first, last)
    op = DynSlice(axis, fresh_size(model, f"{name}_length"))
    x = wire_one(model, name if step == 1 else f"{name}.slice", op, x, first, last)
    return x if step == 1 else wire_one(model, name, Downsample(axis, step), x)


def _wire_inside(model: TypedModel, name: str, bound: OutletId, size: OutletId, *, shift: int) -> OutletId:
    bound = wire_cast(model, name, bound, DatumType.I64)
    zero = model.add_const(f"{name}.zero", 0)
    from_end = wire_one(model, f"{name}.from_end", Add(), bound, size)
    negative = wire_one(model, f"{name}.negative", Lt(), bound, zero)
    place = wire_one(model, f"{name}.place", Iff(), negative, from_end, bound)
    if shift:
        place = wire_one(model, f"{name}.next", Add(), place, model.add_const(f"{name}.shift", shift))
    place = wire_one(model, f"{name}.not_before", Max(), place, zero)
    return wire_one(model, f"{name}.not_after", Min(), place, size)
