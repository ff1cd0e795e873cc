"""Convolutions that read at places which an input moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from tract_core.dims import Dim, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_of_shape, may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, same_type, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class DeformConv(TypedOp):
    """A convolution each of whose kernel's elements reads not at its own place, but some way off it.

    Inputs: x [N, C, *sizes]; kernel [O, C / ``group``, *kernel]; how far off each reads
    [N, ``offset_group`` * kernel * axes, *out]; bias [O]; a factor for each [N, ``offset_group`` * kernel, *out]. Reads
    between elements are interpolated linearly, those outside give 0. The channels are divided into ``offset_group``
    groups that read at places of their own. Sums are made in f32 at least.

    ``strides``, ``dilations``: of the kernel, one per spatial axis. ``before``, ``after``: zeros around the input.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    group: int = 1
    offset_group: int = 1

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """[N, O, *out]. Raises FactError when the inputs do not go together."""
        x, kernel, offset, bias, mask = arity(self, inputs, 5)
        same_type(self, inputs)
        rank = len(self.strides) + 2
        if any(number < 1 for number in (*self.strides, *self.dilations, self.group, self.offset_group)):
            raise FactError(f"DeformConv wants strides, dilations and groups of 1 or more, found {self}")
        if float_type(self, x).rank != rank or {kernel.rank, offset.rank, mask.rank} != {rank} or bias.rank != 1:
            raise FactError(f"DeformConv wants inputs of rank {rank} and a bias of rank 1, found {_listed(inputs)}")
        if not may_equal(kernel.shape[1] * self.group, x.shape[1]):
            raise FactError(f"DeformConv: {self.group} groups of the kernel {kernel} do not fit the channels of {x}")
        if not may_equal(bias.shape[0], kernel.shape[0]):
            raise FactError(f"DeformConv: the bias {bias} has not one element for each channel of the kernel {kernel}")
        out = tuple(self._size(axis, x, kernel) for axis in range(rank - 2))
        reads = product(kernel.shape[2:]) * self.offset_group
        for fact, count in ((offset, reads * (rank - 2)), (mask, reads)):
            wanted = (x.shape[0], count, *out)
            if not may_be_of_shape(fact.shape, wanted):
                raise FactError(f"DeformConv wants offsets or factors of shape {list(wanted)}, found {fact}")
        return (x.with_shape((x.shape[0], kernel.shape[0], *out)),)

    def _size(self, axis: int, x: TypedFact, kernel: TypedFact) -> Dim:
        reach = (kernel.shape[axis + 2] - 1) * self.dilations[axis] + 1
        return (x.shape[axis + 2] + self.before[axis] + self.after[axis] - reach) // self.strides[axis] + 1


def _listed(facts: Sequence[TypedFact]) -> str:
    return "; ".join(map(str, facts))


def _sizes(shape: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(size) for size in shape)


@ROWS.row(REFERENCE, DeformConv)
def reference(op: DeformConv, *inputs: Array) -> Array:
    """All that is read, as columns, times the kernel."""
    x, kernel, offset, bias, mask = inputs
    kind: np.dtype[Any] = wide(x.dtype)
    out, shape = _sizes(offset.shape[2:]), _sizes(kernel.shape[2:])
    reads, axes = prod(shape), len(shape)
    offset = offset.astype(kind).reshape(len(x), op.offset_group, reads, axes, *out)
    places = [
        offset[:, :, :, axis] + _regular(op, axis, shape, out).astype(kind) for axis in range(axes)
    ]  # each [N, offset groups, reads, *out]
    columns = sum(_corners(op, x.astype(kind), places)) * mask.reshape(len(x), op.offset_group, 1, reads, *out)
    columns = columns.reshape(len(x), op.group, x.shape[1] // op.group, reads, prod(out))
    weights = kernel.astype(kind).reshape(op.group, kernel.shape[0] // op.group, kernel.shape[1], reads)
    found = np.einsum("ngcrp,gocr->ngop", columns, weights).reshape(len(x), kernel.shape[0], *out)
    return (found + bias.astype(kind).reshape(-1, *(1 for _ in out))).astype(x.dtype)


def _regular(op: DeformConv, axis: int, kernel: Sequence[int], out: Sequence[int]) -> Array:
    """Where a plain convolution reads on one axis: [reads, *out]."""
    element = np.indices(kernel)[axis].reshape(-1, *(1 for _ in out))
    return element * op.dilations[axis] + np.indices(out)[axis] * op.strides[axis] - op.before[axis]


def _corners(op: DeformConv, x: Array, places: Sequence[Array]) -> Iterator[Array]:
    """For each corner of the cells of the places, its element times its weight: [N, groups, C, reads, *out]."""
    sizes = x.shape[2:]
    grouped = x.reshape(len(x), op.offset_group, x.shape[1] // op.offset_group, -1)
    lower = [np.floor(place) for place in places]
    for corner in combinations((0, 1), repeat=len(sizes)):
        check_run_time()
        index, weight = np.zeros(places[0].shape, np.int64), np.ones_like(places[0])
        for place, low, upper, size in zip(places, lower, corner, sizes, strict=True):
            at = low + upper
            inside = (at >= 0) & (at < size)  # which is false for what is no number
            weight = weight * np.where(inside, place - low if upper else 1 - (place - low), 0)
            index = index * size + np.where(inside, at, 0).astype(np.int64)
        flat = index.reshape(*index.shape[:2], 1, -1)
        values = np.take_along_axis(grouped, flat, axis=3)
        yield values.reshape(*grouped.shape[:3], *index.shape[2:]) * weight[:, :, None]


@ROWS.row(MEMORY, DeformConv)
def memory(op: DeformConv, made: int, *inputs: Array) -> int:
    """All that is read for all channels, four times over; for each place that is read, where it is and its weights"""
    x, kernel, offset, _, mask = inputs
    each, axes = wide(x.dtype).itemsize, kernel.ndim - 2
    read = mask.size // max(op.offset_group, 1) * x.shape[1]
    places = mask.size * (axes * 5 + 3) * 8
    return each * (x.size + offset.size + kernel.size + 4 * read) + places + 3 * made


@ROWS.row(COST, DeformConv)
def cost(op: DeformConv, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Those of the convolution, and one per corner of each cell that is read."""
    x, kernel = inputs[:2]
    reads = product(kernel.shape[2:]) * product(outputs[0].shape[2:]) * outputs[0].shape[0]
    per_read = kernel.shape[0] * kernel.shape[1] + x.shape[1] * 2 ** len(op.strides)
    return {f"FMA({x.datum_type.storage.name})": reads * per_read}


@ROWS.row(AXES, DeformConv)
def axes(op: DeformConv, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Items stay apart, and kernels, where there is one group; where a kernel reads depends on its place."""
    mapping = AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
    x, kernel, offset, bias, mask = mapping.inputs
    item, (_, channel, *places) = x[0], mapping.outputs[0]
    kernel = kernel if op.group > 1 else channel + kernel[1:]
    bias = bias if op.group > 1 else channel
    inner = (x, kernel, item + offset[1:], bias, item + mask[1:])
    return AxesMapping(inner, ("".join((item, channel, *places)),))
