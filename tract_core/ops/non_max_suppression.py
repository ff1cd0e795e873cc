"""Boxes that do not overlap much with better ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, integers, scalar
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class NonMaxSuppression(TypedOp):
    """For each image and class, the best boxes, without those that overlap with a better one that is kept.

    Inputs: boxes [images, boxes, 4], scores [images, classes, boxes]; then, of rank 0, the largest number of boxes to
    keep per image and class, the share of the union of two boxes that may be common to both, and the score that a box
    must exceed. ``centred``: a box is (x of the centre, y of the centre, width, height) rather than two opposite
    corners (y, x, y, x). Output: i64 [``count``, 3], the image, the class and the box of each one kept, the best first.
    """

    centred: bool
    count: Dim
    announces: ClassVar[tuple[str, ...]] = ("count",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``count`` triples. Raises FactError when boxes and scores do not go together."""
        boxes, scores, most, overlap, least = arity(self, inputs, 5)
        if boxes.rank != 3 or not may_equal(boxes.shape[2], 4):
            raise FactError(f"{self.name} wants boxes of shape [images, boxes, 4], found {boxes}")
        fits = scores.rank == 3 and all(
            may_equal(scores.shape[axis], boxes.shape[other]) for axis, other in ((0, 0), (2, 1))
        )
        if not fits:
            raise FactError(f"{self.name} wants scores of shape [images, classes, boxes], found {scores} for {boxes}")
        for fact, role in ((most, "number of boxes"), (overlap, "overlap"), (least, "score")):
            scalar(self, fact, role)
        integers(self, most, "number of boxes")
        for fact in (boxes, scores, overlap, least):
            float_type(self, fact)
        return (TypedFact.of(DatumType.I64, (self.count, 3)),)


@ROWS.row(REFERENCE, NonMaxSuppression)
def reference(op: NonMaxSuppression, *inputs: Array) -> Array:
    """One image and class after the other."""
    boxes, scores, most, overlap, least = inputs
    corners = _corners(op, boxes.astype(np.float64))
    found = [
        (image, label, box)
        for image, label in np.ndindex(scores.shape[:2])
        for box in _keep(corners[image], scores[image, label], int(most), float(overlap), float(least))
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def _corners(op: NonMaxSuppression, boxes: Array) -> Array:
    """The boxes as (smallest y, smallest x, largest y, largest x)."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if op.centred:
        first, second = first - second / 2, first + second / 2
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _keep(boxes: Array, scores: Array, most: int, overlap: float, least: float) -> list[int]:
    """The boxes to keep, by falling score; of equal ones the earlier is the better."""
    kept: list[int] = []
    check_run_time()
    for box in np.argsort(-scores, kind="stable").tolist():
        if len(kept) >= most or not scores[box] > least:
            break
        if not (_common_share(boxes[kept], boxes[box]) > overlap).any():
            check_run_time()
            kept.append(box)
    return kept


def _common_share(boxes: Array, other: Array) -> Array:
    """For each box, its area in common with another one as a share of the area that the two cover."""
    sides = np.minimum(boxes[:, 2:], other[2:]) - np.maximum(boxes[:, :2], other[:2])
    common = np.prod(np.maximum(sides, 0), axis=-1)
    union = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1) + np.prod(other[2:] - other[:2]) - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


@ROWS.row(COST, NonMaxSuppression)
def cost(op: NonMaxSuppression, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One comparison per score; how many overlaps are computed, only a run tells."""
    return {f"FMA({inputs[1].datum_type.storage.name})": inputs[1].shape.volume}


@ROWS.row(AXES, NonMaxSuppression)
def axes(op: NonMaxSuppression, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [2])
