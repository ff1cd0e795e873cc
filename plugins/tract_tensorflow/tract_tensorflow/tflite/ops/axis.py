"""Operators that only arrange elements in other axes: images are (batch, height, width, channels)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel, FactError
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import equal_part
from tract_core.ops.wiring_dyn import wire_dyn_reshape
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.ops.pad import filled, pairs_of
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "RESHAPE")
@tflite_op(ROWS, "RESHAPE")
def reshape(node: TfliteNode, wire: Wiring) -> Wired:
    """The elements in another shape, where -1 is what is left over: an input, or an option"""
    given = wire.optional_input(1)
    if given is None or wire.rank(given) != 1:
        said = node.integers("new_shape", ())
        given = wire.const(() if said == (0,) else said)  # how old files say that there is one element
    return wire.tensor(0).through(wire_dyn_reshape, wire.sizes(given), allow_zero=True)


@quantized_op(ROWS, "SQUEEZE")
@tflite_op(ROWS, "SQUEEZE")
def squeeze(node: TfliteNode, wire: Wiring) -> Wired:
    """Without axes of size 1: those that are named, or all"""
    x = wire.tensor(0)
    axes = node.axes("squeeze_dims", x.rank, ())
    return x.squeeze(axes or [axis for axis, size in enumerate(x.shape) if not is_symbolic(size) and size == 1])


@quantized_op(ROWS, "EXPAND_DIMS")
@tflite_op(ROWS, "EXPAND_DIMS")
def expand_dims(node: TfliteNode, wire: Wiring) -> Wired:
    """With an axis of size 1 more, at the place that an input says"""
    x, axes = wire.tensor(0), wire.known_ints(wire.input(1), "the axis of EXPAND_DIMS")
    return x.unsqueeze(wire.axes(axes, x.rank + len(axes)))


@quantized_op(ROWS, "TRANSPOSE")
@tflite_op(ROWS, "TRANSPOSE")
def transpose(node: TfliteNode, wire: Wiring) -> Wired:
    """With the axes in the order that an input says"""
    x = wire.tensor(0)
    order = wire.axes(wire.known_ints(wire.input(1), "the order of axes"), x.rank)
    if len(order) != x.rank:
        raise FactError(f"an order of {len(order)} axes is given for {x.fact}")
    return x.transpose(order)


@quantized_op(ROWS, "SPACE_TO_DEPTH")
@tflite_op(ROWS, "SPACE_TO_DEPTH")
def space_to_depth(node: TfliteNode, wire: Wiring) -> Wired:
    """Blocks of places gathered into channels"""
    x, block = _image(wire), _block(node)
    batch, height, width, channels = x.shape
    rows, columns = equal_part(height, block), equal_part(width, block)
    split = x.reshape((batch, rows, block, columns, block, channels)).transpose((0, 1, 3, 2, 4, 5))
    return split.reshape((batch, rows, columns, channels * (block * block)))


@quantized_op(ROWS, "DEPTH_TO_SPACE")
@tflite_op(ROWS, "DEPTH_TO_SPACE")
def depth_to_space(node: TfliteNode, wire: Wiring) -> Wired:
    """Channels dealt out to blocks of places"""
    x, block = _image(wire), _block(node)
    batch, height, width, channels = x.shape
    depth = equal_part(channels, block * block)
    split = x.reshape((batch, height, width, block, block, depth)).transpose((0, 1, 3, 2, 4, 5))
    return split.reshape((batch, height * block, width * block, depth))


def _image(wire: Wiring) -> Wired:
    x = wire.tensor(0)
    if x.rank != 4:
        raise FactError(f"an image of 4 axes is wanted (batch, height, width, channels), found {x.fact}")
    return x


def _block(node: TfliteNode) -> int:
    block = node.integer("block_size", 0)
    if block < 1:
        raise node.misfit("block_size", f"is {block}", "1 or more")
    return block


@quantized_op(ROWS, "SPACE_TO_BATCH_ND")
@tflite_op(ROWS, "SPACE_TO_BATCH_ND")
def space_to_batch(node: TfliteNode, wire: Wiring) -> Wired:
    """Each place of a block as an item of its own, in front of the batch; the places are padded first"""
    blocks, ends = _blocks_and_ends(wire)
    last = wire.tensor(0).rank - len(blocks) - 1
    x = filled(wire, wire.input(0), [(0, 0), *ends, *[(0, 0)] * last])
    batch, *places = x.shape[: len(blocks) + 1]
    rest = x.shape[len(blocks) + 1 :]
    parts = [equal_part(size, block) for size, block in zip(places, blocks, strict=True)]
    split = x.reshape((batch, *_interleaved(parts, blocks), *rest))
    count = len(blocks)
    inner = [2 + 2 * axis for axis in range(count)]
    outer = [1 + 2 * axis for axis in range(count)]
    moved = split.transpose((*inner, 0, *outer, *range(2 * count + 1, split.rank)))
    return moved.reshape((batch * prod(blocks), *parts, *rest))


@quantized_op(ROWS, "BATCH_TO_SPACE_ND")
@tflite_op(ROWS, "BATCH_TO_SPACE_ND")
def batch_to_space(node: TfliteNode, wire: Wiring) -> Wired:
    """The way back: items as places of blocks; then what was padded is cut off"""
    x = wire.tensor(0)
    blocks, ends = _blocks_and_ends(wire)
    count = len(blocks)
    places, rest = x.shape[1 : count + 1], x.shape[count + 1 :]
    batch = equal_part(x.shape[0], prod(blocks))
    split = x.reshape((*blocks, batch, *places, *rest))
    between = [axis for pair in zip(range(count + 1, 2 * count + 1), range(count), strict=True) for axis in pair]
    moved = split.transpose((count, *between, *range(2 * count + 1, split.rank)))
    sizes = [size * block for size, block in zip(places, blocks, strict=True)]
    found = moved.reshape((batch, *sizes, *rest))
    for axis, (size, (before, after)) in enumerate(zip(sizes, ends, strict=True), start=1):
        found = found.part(axis, before, size - after) if (before, after) != (0, 0) else found
    return found


def _blocks_and_ends(wire: Wiring) -> tuple[tuple[int, ...], list[tuple[Dim, Dim]]]:
    """The sizes of the blocks, and what is put around each of their axes, or cut off. Raises ModelError."""
    blocks = wire.known_ints(wire.input(1), "the sizes of blocks")
    ends = pairs_of(wire, wire.input(2))
    if len(blocks) != len(ends) or wire.rank(wire.input(0)) <= len(blocks) or min(blocks, default=0) < 1:
        what = f"blocks {list(blocks)} and {len(ends)} pairs of ends"
        raise CorruptModel(f"{what} are given for {wire.fact(wire.input(0))}")
    return blocks, ends


def _interleaved(parts: Sequence[Dim], blocks: Sequence[int]) -> list[Dim]:
    return [size for pair in zip(parts, blocks, strict=True) for size in pair]
