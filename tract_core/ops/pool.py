"""Pools: the largest element, or the sum or mean, of each window, channel by channel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from math import prod

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import POSITION, arity, wide
from tract_core.ops.extremes import LARGEST, lowest
from tract_core.ops.pool_spec import AxisPlan, PoolSpec, window_elements, windows
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

Reads = Iterator[tuple[tuple[int, ...], Array]]
"""What `windows` gives."""


class Pool(TypedOp):
    """Base of the family: the channels stay, each spatial axis is read through the windows of ``pool``."""

    pool: PoolSpec

    def pooled(self, inputs: Sequence[TypedFact]) -> TypedFact:
        """The input's type, in the shape that the windows give. Raises FactError when the input does not fit."""
        (x,) = arity(self, inputs, 1)
        self.pool.check_input(self, x)
        if not x.datum_type.is_number() or x.datum_type.is_complex():
            raise FactError(f"{self.name} wants real numbers, found {x}")
        layout = self.pool.data_format
        spatial = [plan.output for plan in self.pool.plan(self, x.shape)]
        return x.with_shape(layout.replaced(x.shape, x.shape[layout.c_axis(x.rank)], spatial))


@frozen
class MaxPool(Pool):
    """The largest element of each window; padding is never the largest, nothing-a-number always is.

    ``indices``: the element type of a second output, with the place of that element (the first of equals): its
    row-major position in the whole input tensor, batch and channels included. ``None`` for a single output.
    """

    pool: PoolSpec
    indices: DatumType | None = None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The pooled shape in the input's type, and in ``indices``. Raises FactError when the input does not fit."""
        values = self.pooled(inputs)
        if self.indices is None:
            return (values,)
        if not self.indices.is_integer():
            raise FactError(f"{self.name}: indices are integers, not {self.indices.short}")
        return values, values.with_type(self.indices)


@frozen
class SumPool(Pool):
    """The sum of each window; the mean with ``normalize``.

    ``count_include_pad``: whether the mean counts padding as elements. What a ceil mode adds behind never counts.
    """

    pool: PoolSpec
    count_include_pad: bool = False
    normalize: bool = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The pooled shape in the input's type. Raises FactError when the input does not fit."""
        result = self.pooled(inputs)
        if result.datum_type.is_quantized() or (self.normalize and not result.datum_type.is_float()):
            raise FactError(f"{self.name} wants floating-point numbers to divide, found {inputs[0]}")
        return (result,)


@ROWS.row(REFERENCE, MaxPool)
def max_pool(op: MaxPool, x: Array) -> Array | tuple[Array, ...]:
    """Position by position in the kernel, the larger one so far."""
    layout = op.pool.data_format
    plans = op.pool.plan(op, x.shape)
    data = layout.to_nchw(x).astype(wide(x.dtype), copy=False)
    read = partial(windows, plans, data, lowest(x.dtype), useful=True)
    if op.indices is None:
        return layout.from_nchw(_largest(read).astype(x.dtype))
    places: Array = np.arange(x.size)
    read_places = partial(windows, plans, layout.to_nchw(places.reshape(x.shape)), -1, useful=True)
    found = _largest(read).astype(x.dtype), _places(read, read_places).astype(op.indices.numpy)
    return layout.from_nchw(found[0]), layout.from_nchw(found[1])


def _largest(read: Callable[[], Reads]) -> Array:
    return reduce(LARGEST.of, (candidate for _, candidate in read()))


def _places(read: Callable[[], Reads], read_places: Callable[[], Reads]) -> Array:
    """Where the largest elements are, the first of equals; a zero equals the other one."""
    best, best_place = next(read())[1].copy(), next(read_places())[1].copy()
    for (_, candidate), (_, place) in zip(read(), read_places(), strict=True):
        # Any element of the input wins over padding, even one as low as the fill.
        better = (candidate > best) | ((best_place < 0) & (place >= 0)) | (np.isnan(candidate) & ~np.isnan(best))
        best = np.where(better, candidate, best)
        best_place = np.where(better, place, best_place)
    return best_place


@ROWS.row(REFERENCE, SumPool)
def sum_pool(op: SumPool, x: Array) -> Array:
    """Position by position in the kernel, added up; then divided by how many elements each window counts."""
    layout = op.pool.data_format
    plans = op.pool.plan(op, x.shape)
    data = layout.to_nchw(x).astype(wide(x.dtype), copy=False)
    total: Array = np.zeros((*data.shape[:2], *(int(plan.output) for plan in plans)), data.dtype)
    for _, part in windows(plans, data, 0, useful=True):
        total += part
    if op.normalize:
        total /= counts_of(plans, include_pad=op.count_include_pad).astype(total.dtype)
    return layout.from_nchw(total.astype(x.dtype, copy=False))


def counts_of(plans: Sequence[AxisPlan], *, include_pad: bool) -> Array:
    """How many elements each window counts: an array of the output's spatial shape."""
    counts = np.ones((), dtype=np.int64)
    for plan in plans:
        size, before, after = int(plan.input), int(plan.before), int(plan.after)
        first = np.arange(int(plan.output)) * plan.window.stride - before
        low, high = (-before, size + after) if include_pad else (0, size)
        steps = [np.clip(-((first - end) // plan.window.dilation), 0, plan.window.kernel) for end in (low, high)]
        counts = np.multiply.outer(counts, np.maximum(steps[1] - steps[0], 0))
    return counts


@ROWS.row(MEMORY, MaxPool, SumPool)
def memory(op: Pool, made: int, x: Array) -> int:
    """The data in another type and padded, and what was found beside what is read; the same for positions"""
    data = op.pool.data_format.to_nchw(x)
    padded, read = window_elements(op.pool.plan(op, x.shape), data)
    each = wide(x.dtype).itemsize
    found = each * (x.size * (each != x.itemsize) + padded + 2 * read) + made
    places = isinstance(op, MaxPool) and op.indices is not None
    return found + (POSITION * (x.size + padded + 2 * read) + (each + 1) * read if places else 0)


@ROWS.row(COST, Pool)
def cost(op: Pool, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per element of each window, and one division per mean."""
    kind = inputs[0].datum_type.storage.name
    count: dict[str, Dim] = {f"FMA({kind})": outputs[0].shape.volume * prod(op.pool.kernel_shape)}
    if isinstance(op, SumPool) and op.normalize:
        count[f"DIV({kind})"] = outputs[0].shape.volume
    return count


@ROWS.row(AXES, Pool)
def axes(op: Pool, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Batch and channels stay, and spatial axes that no window mixes. Indices count all axes, so none stays."""
    x, y = inputs[0], outputs[0]
    mapping = AxesMapping.disconnected([x.rank], [fact.rank for fact in outputs])
    source = mapping.inputs[0]
    plans = op.pool.plan(op, x.shape)
    start = op.pool.data_format.h_axis
    mixed = {start + axis for axis, plan in enumerate(plans) if not plan.is_trivial}
    term = "".join(mapping.outputs[0][axis] if axis in mixed else source[axis] for axis in range(y.rank))
    return mapping.with_output(0, term)
