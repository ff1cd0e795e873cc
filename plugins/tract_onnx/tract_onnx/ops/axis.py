"""Operators that only arrange elements in other axes."""

from __future__ import annotations

from tract_core.dims import Dim, is_symbolic, product
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.wiring import equal_part
from tract_core.ops.wiring_dyn import wire_dyn_reshape, wire_move_axes
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Reshape")
def reshape_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """The shape is an attribute"""
    return wire.through(wire_dyn_reshape, wire.input(0), wire.const(node.integers("shape")))


@onnx_op(ROWS, "Reshape", since=5)
def reshape_5(node: OnnxNode, wire: Wiring) -> OutletId:
    """X in another shape, where -1 is what is left over, and 0 the size that x has there (unless ``allowzero``)"""
    shape = wire.sizes(wire.input(1))
    return wire.through(wire_dyn_reshape, wire.input(0), shape, allow_zero=node.flag("allowzero"))


@onnx_op(ROWS, "Transpose")
def transpose(node: OnnxNode, wire: Wiring) -> OutletId:
    """X with its axes in another order, the reverse one by default"""
    x = wire.input(0)
    return wire.transpose(x, node.integers("perm", tuple(reversed(range(wire.rank(x))))))


@onnx_op(ROWS, "Squeeze")
def squeeze_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """X without axes of size 1: those of an attribute, or all"""
    return _squeeze(wire, node.integers("axes") if node.has("axes") else None)


@onnx_op(ROWS, "Squeeze", since=13)
def squeeze_13(node: OnnxNode, wire: Wiring) -> OutletId:
    """X without axes of size 1: those of an input, or all"""
    axes = wire.optional_input(1)
    if axes is None:
        return _squeeze(wire, None)
    known, count = wire.constant(axes), wire.count(axes, "axes of Squeeze")
    if known is not None:
        return _squeeze(wire, tuple(int(axis) for axis in known.reshape(-1)))
    moved = wire.through(wire_move_axes, wire.input(0), axes)
    return wire.squeeze(moved, range(wire.rank(moved) - count, wire.rank(moved)))


def _squeeze(wire: Wiring, axes: tuple[int, ...] | None) -> OutletId:
    x = wire.input(0)
    if axes is None:
        axes = tuple(axis for axis, size in enumerate(wire.shape(x)) if not is_symbolic(size) and size == 1)
    return wire.squeeze(x, wire.axes(axes, wire.rank(x)))


@onnx_op(ROWS, "Unsqueeze")
def unsqueeze_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """X with new axes of size 1, at the places that an attribute says"""
    return _unsqueeze(wire, node.integers("axes"))


@onnx_op(ROWS, "Unsqueeze", since=13)
def unsqueeze_13(node: OnnxNode, wire: Wiring) -> OutletId:
    """X with new axes of size 1, at the places that an input says"""
    x, axes = wire.input(0), wire.input(1)
    known, count = wire.constant(axes), wire.count(axes, "axes of Unsqueeze")
    if known is not None:
        return _unsqueeze(wire, tuple(int(axis) for axis in known.reshape(-1)))
    longer = wire.unsqueeze(x, range(wire.rank(x), wire.rank(x) + count))
    return wire.through(wire_move_axes, longer, wire.sizes(axes), back=True)


def _unsqueeze(wire: Wiring, axes: tuple[int, ...]) -> OutletId:
    x = wire.input(0)
    return wire.unsqueeze(x, wire.axes(axes, wire.rank(x) + len(axes)))


@onnx_op(ROWS, "Flatten")
def flatten(node: OnnxNode, wire: Wiring) -> OutletId:
    """X as a matrix: the axes before ``axis`` together, and the others"""
    x = wire.input(0)
    shape, axis = wire.shape(x), node.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise FactError(f"axis {axis} is outside a tensor of {len(shape)} axes")
    if axis < 0:
        axis += len(shape)
    return wire.reshape(x, (product(shape[:axis]), product(shape[axis:])))


@onnx_op(ROWS, "DepthToSpace")
def depth_to_space(node: OnnxNode, wire: Wiring) -> OutletId:
    """Channels dealt out to blocks of ``blocksize`` by ``blocksize`` places"""
    x, block = wire.input(0), node.integer("blocksize")
    blocks_first = node.choice("mode", ("DCR", "CRD"), "DCR") == "DCR"
    batch, channels, height, width = _image(wire, x)
    depth = equal_part(channels, block * block)
    parts = (block, block, depth) if blocks_first else (depth, block, block)
    split = wire.reshape(x, (batch, *parts, height, width))
    order = (0, 3, 4, 1, 5, 2) if blocks_first else (0, 1, 4, 2, 5, 3)
    return wire.reshape(wire.transpose(split, order), (batch, depth, height * block, width * block))


@onnx_op(ROWS, "SpaceToDepth")
def space_to_depth(node: OnnxNode, wire: Wiring) -> OutletId:
    """Blocks of ``blocksize`` by ``blocksize`` places gathered into channels"""
    x, block = wire.input(0), node.integer("blocksize")
    batch, channels, height, width = _image(wire, x)
    rows, columns = equal_part(height, block), equal_part(width, block)
    split = wire.reshape(x, (batch, channels, rows, block, columns, block))
    blocks_first = node.choice("mode", ("DCR", "CRD"), "DCR") == "DCR"
    moved = wire.transpose(split, (0, 3, 5, 1, 2, 4) if blocks_first else (0, 1, 3, 5, 2, 4))
    return wire.reshape(moved, (batch, channels * block * block, rows, columns))


def _image(wire: Wiring, x: OutletId) -> tuple[Dim, Dim, Dim, Dim]:
    shape = wire.shape(x)
    if len(shape) != 4:
        raise FactError(f"an image of 4 axes is wanted (batch, channels, height, width), found {wire.fact(x)}")
    batch, channels, height, width = shape
    return batch, channels, height, width
