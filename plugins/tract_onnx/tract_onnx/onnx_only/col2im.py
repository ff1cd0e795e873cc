"""Blocks of an image, as columns, put back into the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time, check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, vector_of, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Col2Im(TypedOp):
    """An image to each place of which all blocks that cover it add their element.

    Inputs: blocks [N, C * block, L], in row-major order of their positions; the sizes of the image; those of a block.
    Output: [N, C, *image]. ``before``, ``after``: padding that is cut off the image. ``channels``, ``sizes``: C and the
    image's sizes, if only as symbols. f16 and bf16 are summed in f32.

    ``strides``, ``dilations``: of the blocks, one per axis of the image.
    """

    channels: Dim
    sizes: tuple[Dim, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    announces: ClassVar[tuple[str, ...]] = ("channels", "sizes")

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``channels`` and ``sizes``, item by item. Raises FactError when there is no size for each axis."""
        x, image, block = arity(self, inputs, 3)
        if x.rank != 3 or not x.datum_type.is_number():
            raise FactError(f"Col2Im wants numbers of shape [N, C * block, L], found {x}")
        vector_of(self, image, len(self.sizes), "sizes of the image")
        vector_of(self, block, len(self.sizes), "sizes of a block")
        return (x.with_shape((x.shape[0], self.channels, *self.sizes)),)


@ROWS.row(REFERENCE, Col2Im)
def reference(op: Col2Im, x: Array, image: Array, block: Array) -> Array:
    """For each place of a block, the elements of all blocks are added at the places where it comes to lie."""
    padded = [int(size) + b + a for size, b, a in zip(image, op.before, op.after, strict=True)]
    shape = tuple(int(size) for size in block)
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(shape, op.dilations, strict=True)]
    counts = [(size - used) // stride + 1 for size, used, stride in zip(padded, reach, op.strides, strict=True)]
    if min(counts) < 1 or min(shape) < 1 or x.shape[2] != prod(counts) or x.shape[1] % prod(shape):
        raise RunError(
            f"blocks of {list(shape)} fit {counts} times into {padded}; {x.shape[2]} of {x.shape[1]} elements are given"
        )
    check_tensor((x.shape[0], x.shape[1] // prod(shape), *padded), 8)
    columns: Array = x.astype(wide(x.dtype), copy=False).reshape(len(x), x.shape[1] // prod(shape), *shape, *counts)
    found: Array = np.zeros((len(x), columns.shape[1], *padded), dtype=columns.dtype)
    for place in np.ndindex(shape):
        check_run_time()
        lines = tuple(
            slice(at * dilation, at * dilation + stride * (count - 1) + 1, stride)
            for at, dilation, stride, count in zip(place, op.dilations, op.strides, counts, strict=True)
        )
        found[(..., *lines)] += columns[(slice(None), slice(None), *place)]
    kept = tuple(slice(b, size - a) for size, b, a in zip(padded, op.before, op.after, strict=True))
    return found[(..., *kept)].astype(x.dtype)


@ROWS.row(MEMORY, Col2Im)
def memory(op: Col2Im, made: int, x: Array, image: Array, block: Array) -> int:
    """The blocks in a wider type, and the image with its padding"""
    each = wide(x.dtype).itemsize
    padded = prod(int(size) + b + a for size, b, a in zip(image, op.before, op.after, strict=True))
    channels = x.shape[1] // max(prod(int(size) for size in block), 1)
    return each * (x.size * (each != x.itemsize) + 2 * len(x) * channels * padded)


@ROWS.row(COST, Col2Im)
def cost(op: Col2Im, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One addition per input element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, Col2Im)
def axes(op: Col2Im, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Items stay apart; the rest is disconnected."""
    ranks = [fact.rank for fact in inputs]
    mapping = AxesMapping.disconnected(ranks, [outputs[0].rank])
    item = mapping.inputs[0][0]
    return AxesMapping(mapping.inputs, (item + mapping.outputs[0][1:],))
