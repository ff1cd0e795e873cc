"""Regions of images, each resized to one size."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import GatherNd
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "CropAndResize")
def crop_and_resize(node: GraphNode, wire: GraphWiring) -> Wired:
    """For each box (y, x, y, x, in parts of the image), what is in it, in the size that the fourth input says"""
    image, boxes, which = wire.tensor(0).cast(DatumType.F32), wire.tensor(1), wire.tensor(2)
    size = wire.known_ints(wire.input(3), "size of CropAndResize")
    if image.rank != 4 or boxes.rank != 2 or which.rank != 1 or len(size) != 2 or min(size) < 1:
        raise FactError(f"images {image.fact}, boxes {boxes.fact} and their images {which.fact} do not go together")
    wire.require_shape("list of images", which.outlet, (boxes.shape[0],))
    nearest = node.choice("method", ("bilinear", "nearest"), "bilinear") == "nearest"
    rows, is_row = _places(image, boxes, 0, size[0])
    columns, is_column = _places(image, boxes, 1, size[1])
    rows, is_row, columns, is_column = rows[:, :, None], is_row[:, :, None], columns[:, None], is_column[:, None]
    if nearest:
        # Halves are rounded away from zero, and no place is below it.
        found = _taken(image, which, (rows + 0.5).floor(), (columns + 0.5).floor(), size)
    else:
        top, left = rows.floor(), columns.floor()
        down, right = (rows - top)[..., None], (columns - left)[..., None]
        above, below = (
            (1 - right) * _taken(image, which, row, left, size)
            + right * _taken(image, which, row, columns.ceil(), size)
            for row in (top, rows.ceil())
        )
        found = above + (below - above) * down
    inside = (is_row & is_column)[..., None]
    return inside.where(found, node.number("extrapolation_value", 0.0))


def _places(image: Wired, boxes: Wired, axis: int, count: int) -> tuple[Wired, Wired]:
    """For each box, the places that are read along an axis, and whether they are in the image."""
    last = image.with_outlet(image.wire.const(image.shape[axis + 1] - 1)).cast(DatumType.F32)
    start, end = boxes[:, axis : axis + 1], boxes[:, axis + 2 : axis + 3]
    if count > 1:
        step = (end - start) * last / float(count - 1)
        places = start * last + step * np.arange(count, dtype=np.float32)[None]
    else:
        places = (start + end) * 0.5 * last
    is_inside = (places >= 0) & (places <= last)
    return is_inside.where(places, 0), is_inside


def _taken(image: Wired, which: Wired, rows: Wired, columns: Wired, size: tuple[int, ...]) -> Wired:
    shape = (which.shape[0], *size)
    parts = [which[:, None, None].cast(DatumType.I64), rows.cast(DatumType.I64), columns.cast(DatumType.I64)]
    first, *others = (part.broadcast(shape)[..., None] for part in parts)
    return image.op(GatherNd(0), first.op(TypedConcat(3), *others))
