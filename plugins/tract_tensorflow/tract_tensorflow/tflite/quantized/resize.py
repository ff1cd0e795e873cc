"""Images of quantised numbers in other sizes: data (batch, height, width, channels)."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.resized_axis import picked, places_of
from tract_tensorflow.tflite.steps import require_same_steps
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "RESIZE_BILINEAR")
def resize_bilinear(node: TfliteNode, wire: Wiring) -> Wired:
    """Between the four integers around each place, weighed with 10 bits behind the point; of u8 in f32"""
    require_same_steps(node, 1)
    x, places = wire.tensor(0), places_of(wire)
    if x.dtype is DatumType.U8:
        found = _blend(x.cast(DatumType.F32), [each.between() for each in places], 1)
        return (found + 0.5).cast(DatumType.U8)
    total = _blend(x.cast(DatumType.I64), [each.fixed() for each in places], 1 << 10)
    rounded = total + (total > 0).where(1 << 19, total.like(-(1 << 19)))
    return (rounded / (1 << 20)).cast(x.dtype)


def _blend(x: Wired, each: Sequence[tuple[Wired, Wired, Wired]], one: int) -> Wired:
    """For height and width: the places below and above, and how far above; in the order of the kernel's sum."""
    (top, bottom, y), (left, right, across) = each
    y, across = y.unsqueeze([1, 2]), across.unsqueeze([0, 2])
    found = picked(x, (top, left)) * (one - y) * (one - across)
    found = found + picked(x, (bottom, left)) * y * (one - across)
    found = found + picked(x, (top, right)) * (one - y) * across
    return found + picked(x, (bottom, right)) * y * across
