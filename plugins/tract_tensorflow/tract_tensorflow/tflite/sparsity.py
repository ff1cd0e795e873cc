"""Constants that hold only what is not 0, in the order of a walk over their axes and blocks.

Each axis of the walk is dense, or lists where each part of it has elements. Blocks are axes behind those of the tensor.
Source: the sparsity parameters in schema.fbs of LiteRT.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tract_core.data import DatumType
from tract_core.data.stored import byte_count, from_bytes
from tract_core.errors import CorruptModel
from tract_core.limits import LoadLimits, check_tensor
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.flatbuffer import FlatTable
from tract_tensorflow.tflite.schema import SPARSE_INDICES


def dense(table: FlatTable, content: Array, kind: DatumType, shape: tuple[int, ...], limits: LoadLimits) -> Array:
    """The whole tensor. Raises CorruptModel when places do not fit the shape, RunError when that is too large."""
    order: list[int] = table.numbers("traversal_order").tolist()
    blocks: list[int] = table.numbers("block_map").tolist()
    levels: list[FlatTable] = list(table.tables("dim_metadata"))
    rank = len(shape)
    if not rank:
        raise CorruptModel("a sparse tensor has no axes")
    if sorted(order) != list(range(len(levels))) or len(levels) != rank + len(blocks):
        raise CorruptModel(f"a sparse tensor of {rank} axes and {len(blocks)} blocks is walked along {order}")
    if any(not 0 <= axis < rank for axis in blocks) or len(set(blocks)) < len(blocks):
        raise CorruptModel(f"the blocks of a sparse tensor lie along the axes {blocks}, it has {rank}")
    check_tensor(shape, kind.itemsize)
    places = _places(levels, order, shape, blocks)
    count = len(places)
    values = from_bytes(kind, (count,), content, 0, byte_count(kind, (count,)))
    sizes = {axis: levels[order.index(rank + number)].integer("dense_size") for number, axis in enumerate(blocks)}
    at = [places[:, order.index(axis)] for axis in range(rank)]
    for number, axis in enumerate(blocks):
        at[axis] = at[axis] * sizes[axis] + places[:, order.index(rank + number)]
    if any(((one < 0) | (one >= size)).any() for one, size in zip(at, shape, strict=True)):
        raise CorruptModel(f"an element of a sparse tensor lies outside of its shape {list(shape)}")
    found = np.zeros(shape, kind.numpy)
    found[tuple(at)] = values
    return found


def _places(levels: list[FlatTable], order: list[int], shape: tuple[int, ...], blocks: list[int]) -> Array:
    """For each element that there is, where it is along each axis of the walk."""
    found = np.zeros((1, 0), np.int64)
    most = int(np.prod([max(size, 1) for size in shape], dtype=object))
    for level in levels:
        parts = len(found)
        if level.integer("format") == 0:
            size = level.integer("dense_size")
            if size < 0 or parts * size > most:
                raise CorruptModel(f"a dense axis of a sparse tensor has {size} positions, more than its shape")
            counts, along = np.full(parts, size), np.tile(np.arange(size), parts)
        else:
            ends, along = (_numbers(level, name) for name in ("array_segments", "array_indices"))
            if (
                len(ends) != parts + 1
                or ends[0] != 0
                or ends[-1] != len(along)
                or any(a > b for a, b in pairwise(ends))
            ):
                raise CorruptModel("a sparse axis does not say where its parts end")
            counts = np.diff(ends)
        found = np.column_stack([np.repeat(found, counts, axis=0), along])
    return found


def _numbers(level: FlatTable, name: str) -> Array:
    table = level.union(name, SPARSE_INDICES)
    return np.zeros(0, np.int64) if table is None else table.numbers("values").astype(np.int64)
