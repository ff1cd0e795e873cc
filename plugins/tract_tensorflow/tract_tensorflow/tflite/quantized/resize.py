"""Images of quantised numbers in other sizes: data (batch, height, width, channels)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel, Unsupported
from tract_core.ops.gather import Gather
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import require_same_steps
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


def _sizes(wire: Wiring) -> list[tuple[int, int]]:
    """Height and width, each as it is and as it is wanted."""
    x, wanted = wire.tensor(0), wire.known_ints(wire.input(1), "sizes")
    if x.rank != 4 or len(wanted) != 2 or min(wanted) < 1:
        raise CorruptModel(f"{x.fact} is wanted with the height and width {list(wanted)}")
    if any(is_symbolic(size) for size in x.shape[1:3]):
        raise Unsupported(f"a quantised image of unknown height or width, {x.fact}, in another size")
    return [(int(size), to) for size, to in zip(x.shape[1:3], wanted, strict=True)]


def _picked(x: Wired, places: Sequence[Array]) -> Wired:
    """Rows and columns at places."""
    for axis, each in enumerate(places, 1):
        x = x.op(Gather(axis), x.operand(each.astype(np.int64)))
    return x


@quantized_op(ROWS, "RESIZE_BILINEAR")
def resize_bilinear(node: TfliteNode, wire: Wiring) -> Wired:
    """Between the four integers around each place, weighed with 10 bits behind the point; of u8 in f32"""
    require_same_steps(node, 1)
    x = wire.tensor(0)
    corners, half = node.flag("align_corners"), node.flag("half_pixel_centers")
    if x.dtype is DatumType.U8:
        each = [_places(*sizes, corners=corners, half=half) for sizes in _sizes(wire)]
        return (_blend(x.cast(DatumType.F32), each, np.float32(1)) + 0.5).cast(DatumType.U8)
    each = [_fixed_places(*sizes, corners=corners, half=half) for sizes in _sizes(wire)]
    total = _blend(x.cast(DatumType.I64), each, np.int64(1 << 10))
    rounded = total + (total > 0).where(1 << 19, total.like(-(1 << 19)))
    return (rounded / (1 << 20)).cast(x.dtype)


def _blend(x: Wired, each: Sequence[tuple[Array, Array, Array]], one: np.generic) -> Wired:
    """For height and width: the places below and above, and how far above; in the order of the kernel's sum."""
    (top, bottom, y), (left, right, across) = each
    y, across = y[:, None, None], across[None, :, None]
    found = _picked(x, (top, left)) * (one - y) * (one - across)
    found = found + _picked(x, (bottom, left)) * y * (one - across)
    found = found + _picked(x, (top, right)) * (one - y) * across
    return found + _picked(x, (bottom, right)) * y * across


def _places(size: int, to: int, *, corners: bool, half: bool) -> tuple[Array, Array, Array]:
    scale = np.float32(size - 1) / np.float32(to - 1) if corners and to > 1 else np.float32(size) / np.float32(to)
    steps, middle = np.arange(to).astype(np.float32), np.float32(0.5)
    places = (steps + middle) * scale - middle if half else steps * scale
    low, high = np.maximum(np.floor(places), 0), np.minimum(np.ceil(places), size - 1)
    return low, high, (places - low.astype(np.float32)).astype(np.float32)


def _fixed_places(size: int, to: int, *, corners: bool, half: bool) -> tuple[Array, Array, Array]:
    """The same with 10 bits behind the point; quotients are cut off towards zero."""
    between, parts = (size - 1, to - 1) if corners and to > 1 else (size, to)
    scale = ((between << 10) + parts // 2) // parts
    places = np.arange(to) * scale + (scale // 2 - (1 << 9) if half else 0)
    low = np.maximum(np.trunc(places / 1024), 0).astype(np.int64)
    high = np.minimum(np.trunc((places + 1023) / 1024), size - 1).astype(np.int64)
    return low, high, places - low * 1024
