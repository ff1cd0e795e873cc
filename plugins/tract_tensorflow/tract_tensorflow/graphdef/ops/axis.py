"""Axes added, removed, put into another order, or made of others."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.pad import PadConstant
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import equal_part
from tract_core.ops.wiring_dyn import wire_dyn_reshape, wire_move_axes, wire_pad, wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.pad import zero_of
from tract_tensorflow.graphdef.ops.spatial import data_format
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Reshape")
def reshape(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X in the shape that the second input holds; one size may be -1, and is what is left"""
    return wire.through(wire_dyn_reshape, wire.input(0), wire.sizes(wire.input(1)), allow_zero=True)


@tf_op(ROWS, "Squeeze")
def squeeze(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X without axes of size 1: those of an attribute, or all"""
    x = wire.input(0)
    axes = node.integers("squeeze_dims", ())
    if not axes:
        axes = tuple(axis for axis, size in enumerate(wire.shape(x)) if not is_symbolic(size) and size == 1)
    return wire.squeeze(x, wire.axes(axes, wire.rank(x)))


@tf_op(ROWS, "ExpandDims")
def expand_dims(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X with a new axis of size 1"""
    x = wire.input(0)
    axes = wire.known_ints(wire.input(1), "axis of ExpandDims")
    if len(axes) != 1:
        raise CorruptModel(f"ExpandDims wants one axis, found {list(axes)[:20]}")
    return wire.unsqueeze(x, wire.axes(axes, wire.rank(x) + 1))


@tf_op(ROWS, "Transpose")
def transpose(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X with its axes in the order of the second input"""
    x, order = wire.input(0), wire.input(1)
    known = wire.ints(order, "order of Transpose")
    if known is None:
        wire.require_shape("order", order, (wire.rank(x),))
        # All axes are moved to the end, the first first.
        return wire.through(wire_move_axes, x, wire.sizes(order))
    return wire.transpose(x, wire.axes(known, wire.rank(x)))


@tf_op(ROWS, "InvertPermutation")
def invert_permutation(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Where each number stands in the input"""
    x = wire.input(0)
    if wire.rank(x) != 1:
        raise FactError(f"a list is wanted, found {wire.fact(x)}")
    known = wire.ints(x, "permutation")
    if known is not None:
        if sorted(known) != list(range(len(known))):
            raise CorruptModel(f"{list(known)[:50]} is no permutation")
        return wire.cast(wire.const([known.index(place) for place in range(len(known))]), wire.dtype(x))
    (count,) = wire.shape(x)
    places = wire.through(wire_range, wire.const(0), wire.const(count), wire.const(1))
    places = wire.cast(places, wire.dtype(x))
    return wire.op(ScatterNd(), places, wire.unsqueeze(x, [1]), places)


@tf_op(ROWS, "DepthToSpace")
def depth_to_space(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Channels dealt out to blocks of places"""
    x, first = _channels_last(node, wire)
    batch, height, width, channels = _image(wire, x)
    block = _block(node)
    depth = equal_part(channels, block * block)
    split = wire.reshape(x, (batch, height, width, block, block, depth))
    moved = wire.transpose(split, (0, 1, 3, 2, 4, 5))
    return _back(wire, wire.reshape(moved, (batch, height * block, width * block, depth)), first)


@tf_op(ROWS, "SpaceToDepth")
def space_to_depth(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Blocks of places gathered into channels"""
    x, first = _channels_last(node, wire)
    batch, height, width, channels = _image(wire, x)
    block = _block(node)
    rows, columns = equal_part(height, block), equal_part(width, block)
    split = wire.reshape(x, (batch, rows, block, columns, block, channels))
    moved = wire.transpose(split, (0, 1, 3, 2, 4, 5))
    return _back(wire, wire.reshape(moved, (batch, rows, columns, channels * block * block)), first)


def _channels_last(node: GraphNode, wire: GraphWiring) -> tuple[OutletId, bool]:
    """The image with the channels last, and whether they were first."""
    x, first = wire.input(0), data_format(node).channels_first
    _image(wire, x)
    return (wire.transpose(x, (0, 2, 3, 1)) if first else x), first


def _back(wire: GraphWiring, x: OutletId, first: bool) -> OutletId:
    return wire.transpose(x, (0, 3, 1, 2)) if first else x


def _block(node: GraphNode) -> int:
    block = node.integer("block_size")
    if block < 1:
        raise node.misfit("block_size", f"is {block}", "1 or more")
    return block


def _image(wire: GraphWiring, x: OutletId) -> tuple[Dim, Dim, Dim, Dim]:
    shape = wire.shape(x)
    if len(shape) != 4:
        raise FactError(f"an image of 4 axes is wanted, found {wire.fact(x)}")
    first, second, third, fourth = shape
    return first, second, third, fourth


def _blocks(wire: GraphWiring, slot: int, x: OutletId) -> tuple[int, ...]:
    found = wire.known_ints(wire.input(slot), "block sizes")
    if min(found, default=1) < 1 or len(found) >= wire.rank(x):
        raise CorruptModel(f"blocks of {list(found)[:20]} do not fit {wire.fact(x)}")
    return found


def _pairs(wire: GraphWiring, slot: int, count: int, what: str) -> list[tuple[Dim, Dim]]:
    """What is added or cut off before and after each axis. Raises Unsupported unless it is known."""
    dims = wire.dims(wire.input(slot))
    if dims is None:
        raise Unsupported(f"the {what} of blocks are computed, wanted numbers or sizes of inputs")
    if len(dims) != 2 * count:
        raise CorruptModel(f"{len(dims)} {what} are given for {count} axes, two for each are wanted")
    return list(zip(dims[0::2], dims[1::2], strict=True))


@tf_op(ROWS, "SpaceToBatchND")
def space_to_batch(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Blocks of places gathered into the batch"""
    return _to_batch(wire, _blocks(wire, 1, wire.input(0)), 2)


@tf_op(ROWS, "SpaceToBatch")
def space_to_batch_of_images(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The same of images, in blocks as high as wide"""
    _image(wire, wire.input(0))
    return _to_batch(wire, (_block(node),) * 2, 1)


@tf_op(ROWS, "BatchToSpaceND")
def batch_to_space(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The batch dealt out to blocks of places, and the ends cut off"""
    return _to_space(wire, _blocks(wire, 1, wire.input(0)), 2)


@tf_op(ROWS, "BatchToSpace")
def batch_to_space_of_images(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The same of images, in blocks as high as wide"""
    _image(wire, wire.input(0))
    return _to_space(wire, (_block(node),) * 2, 1)


def _to_batch(wire: GraphWiring, blocks: Sequence[int], paddings: int) -> OutletId:
    x = wire.input(0)
    count, rest = len(blocks), wire.rank(x) - len(blocks) - 1
    pairs = [(0, 0), *_pairs(wire, paddings, count, "paddings"), *(((0, 0),) * rest)]
    x = wire.through(wire_pad, x, pairs, PadConstant(zero_of(wire.dtype(x))))
    batch, *sizes = wire.shape(x)
    split: list[Dim] = [batch]
    for size, block in zip(sizes, blocks, strict=False):
        split += [equal_part(size, block), block]
    split += sizes[count:]
    offsets, places = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    moved = wire.transpose(wire.reshape(x, split), (*offsets, 0, *places, *range(2 * count + 1, len(split))))
    total = batch
    for block in blocks:
        total = total * block
    return wire.reshape(moved, (total, *(split[place] for place in places), *sizes[count:]))


def _to_space(wire: GraphWiring, blocks: Sequence[int], places: int) -> OutletId:
    x = wire.input(0)
    count, (batch, *sizes) = len(blocks), wire.shape(x)
    crops = _pairs(wire, places, count, "crops")
    volume = 1
    for block in blocks:
        volume *= block
    share = equal_part(batch, volume)
    split = wire.reshape(x, (*blocks, share, *sizes))
    order: list[int] = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    moved = wire.transpose(split, (*order, *range(2 * count + 1, wire.rank(split))))
    whole = [size * block for size, block in zip(sizes, blocks, strict=False)]
    found = Wired(wire, wire.reshape(moved, (share, *whole, *sizes[count:])))
    for axis, (before, after) in enumerate(crops, start=1):
        if (before, after) != (0, 0):
            found = found.part(axis, before, found.shape[axis] - after)
    return found.outlet
