"""Weights in bytes: the numbers that they stand for, and the factors that sums with them are multiplied by."""

from __future__ import annotations

import numpy as np

from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.rounding import limits
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.file import read_tensor
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.wiring import Wiring


def float_weights(wire: Wiring, slot: int, weights: Wired, axis: int, to: int) -> Wired:
    """Weights beside data in floats; bytes are dequantised. ``axis``: of their scales in the file; ``to``: of these."""
    if weights.dtype.is_float():
        return weights.cast(wire.dtype(wire.input(0)))
    kind, blocks = wire.dtype(wire.input(0)).storage, block_scales(wire, slot)
    if blocks is not None:
        op = DequantizeLinear(kind, weights.rank - 1, blocks.size)
        return weights.op(op, weights.operand(blocks.scales), weights.operand(blocks.zeros))
    quantization = wire.node.quantization(slot)
    scales, zeros = quantization.scales, quantization.zeros.astype(weights.dtype.numpy)
    if scales.size == 1:
        scales, zeros = scales.reshape(()), zeros.reshape(())
    elif quantization.axis != axis:
        raise CorruptModel(f"the scales of weights lie along axis {quantization.axis}, wanted {axis}")
    return weights.op(DequantizeLinear(kind, to), weights.operand(scales), weights.operand(zeros))


@frozen
class BlockScales:
    """A number is (integer - zero) * scale. Both are given for each ``size`` places on the last axis.

    ``scales``: f32, ``zeros``: in the type of the integers.
    """

    scales: Array
    zeros: Array
    size: int

    __eq__ = object.__eq__  # arrays are not compared
    __hash__ = object.__hash__


def block_scales(wire: Wiring, slot: int) -> BlockScales | None:
    """Those of a constant that has scales by blocks, which are other tensors; ``None`` for others.

    Raises ModelError.
    """
    tensor = wire.node.input(slot)
    if tensor.blocks is None:
        return None
    size = tensor.blocks.integer("block_size")
    sizes: list[int] = tensor.blocks.numbers("block_shape").tolist()
    if sizes and (len(sizes) != len(tensor.shape) or any(one != 1 for one in sizes[:-1])):
        raise Unsupported(f"input {slot} has scales for blocks of {sizes}, wanted blocks of the last axis")
    size = sizes[-1] if sizes else size
    last = tensor.shape[-1] if tensor.shape else None
    if tensor.kind is None or last is None or size < 1 or last % size:
        raise CorruptModel(f"input {slot} is {list(tensor.shape)}, with scales for blocks of {size}")
    shape = *(one or 0 for one in tensor.shape[:-1]), last // size
    scales = _of_blocks(wire, tensor.blocks.integer("scales"), shape, "scales").astype(np.float32)
    if not (np.isfinite(scales) & (scales >= 0)).all():
        raise CorruptModel("the scale of a block is negative, or no number")
    place = tensor.blocks.integer("zero_points")
    zeros: Array = np.zeros(shape, np.int64) if place <= 0 else _of_blocks(wire, place, shape, "zero points")
    low, high = limits(tensor.kind)
    if zeros.size and not low <= int(zeros.min()) <= int(zeros.max()) <= high:
        raise CorruptModel(f"a zero point of a block is no {tensor.kind.short}")
    return BlockScales(scales, zeros.astype(tensor.kind.numpy), size)


def _of_blocks(wire: Wiring, index: int, shape: tuple[int | None, ...], what: str) -> Array:
    """What another tensor of the graph holds, in a shape. Raises CorruptModel."""
    file = wire.node.file
    tables = list(file.graph(file.entered[-1]).tables("tensors"))
    if not 0 <= index < len(tables):
        raise CorruptModel(f"the {what} of blocks are tensor {index}, the graph has {len(tables)}")
    tensor = read_tensor(index, tables[index], file.limits)
    if tensor.kind is None or tensor.shape != shape or not file.has_content(tensor):
        raise CorruptModel(
            f"the {what} of blocks are {tensor.name[:200]!r} of {list(tensor.shape)}, wanted {list(shape)}"
        )
    return file.array(tensor)


def factors_along(
    node: TfliteNode, axis: int, rank: int, to: int, slots: tuple[int, int] = (0, 1), *, in_f32: bool = False
) -> Array:
    """Steps of data times steps of weights in steps of the output, in f64: one, or one for each place of an axis.

    ``axis``: that of the weights' scales; the result has ``rank`` axes, and varies along ``to``. ``slots``: where data
    and weights are. ``in_f32``: whether the product of the first two is rounded to f32.
    """
    data, weights, output = node.quantization(slots[0]), node.quantization(slots[1]), node.output_quantization()
    if weights.scales.size > 1 and weights.axis != axis:
        raise CorruptModel(f"the scales of weights lie along axis {weights.axis}, wanted {axis}")
    products = data.scale * weights.scales.astype(np.float64)
    factors = (products.astype(np.float32).astype(np.float64) if in_f32 else products) / output.scale
    return factors.reshape([-1 if place == to else 1 for place in range(rank)])
