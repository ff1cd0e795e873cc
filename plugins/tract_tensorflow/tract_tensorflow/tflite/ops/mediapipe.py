"""Custom operators of MediaPipe's files.

Source: what `mediapipe.util.tflite.operations` computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.ops.conv import KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.gather import Gather
from tract_core.ops.polar_wiring import wire_atan2
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, SameUpper, Valid
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import ACTIVATIONS
from tract_tensorflow.tflite.kernels import known_sizes
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.options import ENUMERATIONS
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_SAME = 1
_LARGEST = 1 << 20
"""A stride or a size of a window: more makes no sense, and sums of some stay small."""


def _integers(node: TfliteNode, count: int) -> list[int]:
    """The first of the integers that an operator says, one behind the other. Raises CorruptModel."""
    if node.custom.size < 4 * count:
        raise CorruptModel(f"{node.op_type} says {node.custom.size} bytes, at least {4 * count} are wanted")
    found = np.frombuffer(node.custom.tobytes(), "<i4", count).tolist()
    if min(found[1:]) < 1 or max(found) > _LARGEST or found[0] not in (_SAME, 2):
        raise CorruptModel(f"{node.op_type} says {found}, wanted a padding (1 or 2) and sizes from 1 on")
    return found


def _images(wire: Wiring, slot: int = 0) -> tuple[Wired, tuple[int, ...]]:
    """Images, and their sizes (batch, height, width, channels), which are known. Raises FactError."""
    return (x := wire.tensor(slot)), known_sizes(x, 4)


@tflite_op(ROWS, "custom/Convolution2DTransposeBias")
def transposed_convolution(node: TfliteNode, wire: Wiring) -> Wired:
    """A deconvolution with a kernel (outputs, height, width, channels), and a bias"""
    padding, across, down = _integers(node, 3)
    x, sizes = _images(wire)
    kernel = wire.tensor(1)
    window, strides = known_sizes(kernel, 4)[1:3], (down, across)
    total = [
        max(0, count - (size - 1) % stride - 1) if padding == _SAME else 0
        for size, count, stride in zip(sizes[1:3], window, strides, strict=True)
    ]
    before = tuple(one // 2 for one in total)
    ends = Explicit(before, tuple(one - half for one, half in zip(total, before, strict=True)))
    pool = PoolSpec(DataFormat.NHWC, window, ends, (1, 1), strides)
    return x.op(Deconv(pool, KernelFormat.OHWI), kernel, wire.tensor(2))


@tflite_op(ROWS, "custom/MaxPoolingWithArgmax2D")
def max_pool(node: TfliteNode, wire: Wiring) -> list[Wired]:
    """The largest of each window, and where in the window it is, row by row, as a number that is 0.1 more"""
    padding, across, down, width, height = _integers(node, 5)
    x, sizes = _images(wire)
    spec = PoolSpec(
        DataFormat.NHWC, (height, width), SameUpper() if padding == _SAME else Valid(), (1, 1), (down, across)
    )
    op = MaxPool(spec, DatumType.I64)
    largest, place = (x.with_outlet(one) for one in wire.ops(op, x.outlet))
    rows, columns = spec.plan(op, x.shape)
    starts = [
        np.arange(int(plan.output)) * stride - int(plan.before) for plan, stride in ((rows, down), (columns, across))
    ]
    pixel = place / sizes[3]
    column, row = pixel - pixel / sizes[2] * sizes[2], pixel / sizes[2] - pixel / (sizes[1] * sizes[2]) * sizes[1]
    row = row - x.operand(starts[0].reshape(1, -1, 1, 1))
    column = column - x.operand(starts[1].reshape(1, 1, -1, 1))
    words = ENUMERATIONS["fused_activation_function"]
    fused = int.from_bytes(node.custom.tobytes()[20:24], "little")
    word = words[fused] if fused < len(words) else str(fused)
    if word not in ACTIVATIONS:
        raise Unsupported(f"{word}, fused into {node.op_type}")
    return [ACTIVATIONS[word](largest), (row * width + column).cast(DatumType.F32) + 0.1]


@tflite_op(ROWS, "custom/MaxUnpooling2D")
def max_unpool(node: TfliteNode, wire: Wiring) -> Wired:
    """Each number at its place in its window, zeros elsewhere; what lies outside is left out"""
    _, across, down, width, height = _integers(node, 5)
    x, (batch, rows, columns, channels) = _images(wire)
    tall, wide = rows * height, columns * width
    before = [max(0, (size - 1) * stride + count - out) // 2 for size, stride, count, out in (
        (rows, down, height, tall), (columns, across, width, wide),
    )]  # fmt: skip
    places = wire.tensor(1).cast(DatumType.I64)
    row = places / width
    column = places - row * width + x.operand((np.arange(columns) * across - before[1]).reshape(1, 1, -1, 1))
    row = row + x.operand((np.arange(rows) * down - before[0]).reshape(1, -1, 1, 1))
    inside = (row >= 0) & (row < tall) & (column >= 0) & (column < wide)
    image = x.operand(np.arange(batch, dtype=np.int64).reshape(-1, 1, 1, 1))
    channel = x.operand(np.arange(channels, dtype=np.int64).reshape(1, 1, 1, -1))
    end = batch * tall * wide * channels
    flat = inside.where((((image * tall + row) * wide + column) * channels + channel), end)
    count = batch * rows * columns * channels
    zeros = Wired(wire, wire.broadcast(wire.const(np.zeros(1, np.float32)), (end + 1,)))
    found = zeros.op(ScatterElements(0), flat.reshape((count,)), x.reshape((count,)))
    return found.part(0, 0, end).reshape((batch, tall, wide, channels))


@tflite_op(ROWS, "custom/TransformLandmarks")
def transform_landmarks(node: TfliteNode, wire: Wiring) -> Wired:
    """Points [1, points, 2 or 3], moved and turned by a matrix [1, 4, 4]; a third coordinate stays"""
    points, matrix = wire.tensor(0), _matrix(wire)
    if points.rank != 3 or points.shape[2] not in (2, 3):
        raise Unsupported(f"{node.op_type} of {points.fact}; points [1, points, 2 or 3] are wanted")
    x, y = (points.part(2, axis, axis + 1) for axis in (0, 1))
    moved = [matrix[row, 0] * x + matrix[row, 1] * y + matrix[row, 3] for row in (0, 1)]
    rest = [points.part(2, 2, 3)] if points.shape[2] == 3 else []
    return moved[0].concat([moved[1], *rest], 2)


def _matrix(wire: Wiring) -> Wired:
    """The second input, [4, 4]. Raises FactError."""
    matrix = wire.tensor(1)
    if tuple(matrix.shape) != (1, 4, 4):
        raise FactError(f"the matrix of {wire.node.op_type} is {matrix.fact}, wanted [1,4,4]")
    return matrix.squeeze([0])


@tflite_op(ROWS, "custom/TransformTensorBilinear", "custom/TransformTensor")
def transform_tensor(node: TfliteNode, wire: Wiring) -> Wired:
    """Pixels of another image, as a matrix [1, 4, 4] says where they are; between pixels, and 0 outside"""
    x, (batch, rows, columns, channels) = _images(wire)
    if batch != 1 or not rows * columns:
        raise Unsupported(f"{node.op_type} of {x.fact}; one image is wanted")
    tall, wide, matrix = node.said_size("output_height"), node.said_size("output_width"), _matrix(wire)
    if tall * wide > 1 << 24:
        raise CorruptModel(f"{node.op_type} makes an image of {tall} by {wide}")
    down, across = (one.reshape(-1).astype(np.float32) for one in np.mgrid[:tall, :wide])
    half = 0.5 if node.op_type.endswith("Bilinear") else 0.0
    column, row = (
        matrix[line, 0] * x.operand(across) + matrix[line, 1] * x.operand(down)
        + (matrix[line, 3] + matrix[line, 0] * half + matrix[line, 1] * half - half)
        for line in (0, 1)
    )  # fmt: skip
    outside = (column < 0) | (column > columns - 1) | (row < 0) | (row > rows - 1)
    left, above = column.floor(), row.floor()
    flat, to_right, to_below = x.reshape((rows * columns, channels)), (column - left)[:, None], (row - above)[:, None]

    def pixel(below: int, right: int) -> Wired:
        line = (above + below).maximum(0).minimum(rows - 1).cast(DatumType.I64)
        place = (left + right).maximum(0).minimum(columns - 1).cast(DatumType.I64)
        return flat.op(Gather(0), line * columns + place)

    upper = (1 - to_right) * pixel(0, 0) + to_right * pixel(0, 1)
    lower = (1 - to_right) * pixel(1, 0) + to_right * pixel(1, 1)
    found = outside[:, None].where(0, to_below * lower + (1 - to_below) * upper)
    return found.reshape((1, tall, wide, channels))


@tflite_op(ROWS, "custom/Landmarks2TransformMatrix")
def landmarks_to_matrix(node: TfliteNode, wire: Wiring) -> Wired:
    """The matrix [1, 4, 4] that leads from a cut-out image around some of the points [1, points, 3] to the whole one"""
    points = wire.tensor(0)
    if points.rank != 3 or points.shape[0] != 1 or points.shape[2] != 3:
        raise Unsupported(f"{node.op_type} of {points.fact}; points [1, points, 3] are wanted")
    x, y = (points[0, :, axis] for axis in (0, 1))
    left, right = (np.array([node.said_size(f"{side}_rotation_idx")]) for side in ("left", "right"))
    across, down = (one.op(Gather(0), x.operand(right)) - one.op(Gather(0), x.operand(left)) for one in (x, y))
    angle = node.said_number("target_rotation_radians") - wire_atan2(down, across)
    chosen = x.operand(_indices(node))
    turned = _turned(x.op(Gather(0), chosen), y.op(Gather(0), chosen), angle)
    low, high = ([one.min([0]) for one in turned], [one.max([0]) for one in turned])
    middle = _turned((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, -angle)
    width, height = (b - a for a, b in zip(low, high, strict=True))
    wide, tall = _size(node, "output_width"), _size(node, "output_height")
    to_x, to_y = width * (node.said_number("scale_x") / wide), height * (node.said_number("scale_y") / tall)
    cos, sin = angle.cos(), (-angle).sin()
    rows = [
        [cos * to_x, -sin * to_y, None, middle[0] - cos * to_x * (wide / 2) + sin * to_y * (tall / 2)],
        [sin * to_x, cos * to_y, None, middle[1] - sin * to_x * (wide / 2) - cos * to_y * (tall / 2)],
    ]
    zero = x.operand(np.zeros(1, np.float32))
    flat = [zero if one is None else one for row in rows for one in row]
    return flat[0].concat([*flat[1:], x.operand(np.eye(4, dtype=np.float32)[2:].reshape(-1))], 0).reshape((1, 4, 4))


def _turned(x: Wired, y: Wired, angle: Wired) -> tuple[Wired, Wired]:
    cos, sin = angle.cos(), angle.sin()
    return x * cos - y * sin, x * sin + y * cos


def _size(node: TfliteNode, name: str) -> int:
    found = node.said_size(name)
    if not found:
        raise CorruptModel(f"option {name} of {node.op_type} is 0")
    return found


def _indices(node: TfliteNode) -> Array:
    """The points that the image shall show. Raises CorruptModel."""
    found: Any = node.said.get("subset_idxs")
    given = cast("Sequence[object]", found if isinstance(found, list) else ())
    if given and all(isinstance(one, int) and 0 <= one < 1 << 31 for one in given):
        return np.array(given, np.int64)
    raise CorruptModel(f"option subset_idxs of {node.op_type} is no list of indices")
