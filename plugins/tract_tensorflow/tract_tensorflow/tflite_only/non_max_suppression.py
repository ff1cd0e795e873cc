"""Boxes whose scores fall the more, the more they overlap with better ones.

Source: N. Bodla et al., "Soft-NMS: improving object detection with one line of code" (2017), as the kernels of TFLite
compute it.
"""

from __future__ import annotations

import heapq
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
from tract_core.ops.expect import arity, scalar
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class SoftNonMaxSuppression(TypedOp):
    """The best boxes, up to ``most`` of them; the scores of others fall where they overlap with one that is kept.

    Inputs, all f32: boxes [boxes, 4], each two opposite corners (y, x, y, x); scores [boxes]; then, of rank 0, the
    share of the union of two boxes from which on the worse one is dropped, the score that a box must exceed, and the
    deviation: a score times exp(-share**2 / (2 * deviation)). Outputs: the boxes that are kept, i32 [``most``], and
    their scores, f32 [``most``], both with zeros behind them; and how many there are, i32.
    """

    most: Dim
    announces: ClassVar[tuple[str, ...]] = ("most",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Lists of ``most`` elements, and a number. Raises FactError when boxes and scores do not go together."""
        boxes, scores, *parameters = arity(self, inputs, 5)
        if boxes.rank != 2 or scores.rank != 1 or not may_equal(boxes.shape[1], 4):
            raise FactError(f"{self.name} wants boxes [boxes, 4] and scores [boxes], found {boxes} and {scores}")
        if not may_equal(boxes.shape[0], scores.shape[0]) or any(one.datum_type is not DatumType.F32 for one in inputs):
            raise FactError(f"{self.name} wants a score for each box, all in f32, found {boxes} and {scores}")
        for fact, role in zip(parameters, ("overlap", "score", "deviation"), strict=True):
            scalar(self, fact, role)
        return (
            TypedFact.of(DatumType.I32, (self.most,)),
            TypedFact.of(DatumType.F32, (self.most,)),
            TypedFact.of(DatumType.I32, ()),
        )


@ROWS.row(REFERENCE, SoftNonMaxSuppression)
def reference(op: SoftNonMaxSuppression, *inputs: Array) -> tuple[Array, ...]:
    """The best candidate is compared with the boxes kept since it was last; where its score fell, it waits again."""
    boxes, scores, overlap, least, deviation = inputs
    most = int(op.most)
    corners = np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)
    waiting = [(-float(score), box, 0) for box, score in enumerate(scores.tolist()) if score > least]
    heapq.heapify(waiting)
    kept: list[int] = []
    found: list[float] = []
    while waiting and len(kept) < most:
        check_run_time()
        score, box, seen = heapq.heappop(waiting)
        shares = shares_of(corners[kept[seen:]], corners[box])
        if (shares >= overlap).any():
            continue
        factor = np.float32(1)
        if deviation > 0:
            factor = np.prod(np.exp(np.float32(-0.5) / deviation * shares * shares), dtype=np.float32)
        if factor == 1:
            kept.append(box)
            found.append(-score)
        elif -score * factor > least:
            heapq.heappush(waiting, (score * float(factor), box, len(kept)))
    return _filled(kept, most, np.int32), _filled(found, most, np.float32), np.array(len(kept), np.int32)


def _filled(values: Sequence[float], size: int, kind: type[np.generic]) -> Array:
    result = np.zeros(size, kind)
    result[: len(values)] = values
    return result


def shares_of(boxes: Array, other: Array) -> Array:
    """For each box, its area in common with another one as a share of the area that the two cover."""
    sides = np.minimum(boxes[:, 2:], other[2:]) - np.maximum(boxes[:, :2], other[:2])
    common = np.prod(np.maximum(sides, 0), axis=-1)
    areas, area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1), np.prod(other[2:] - other[:2])
    union = areas + area - common
    return np.divide(common, union, out=np.zeros_like(common), where=(areas > 0) & (area > 0))


@ROWS.row(COST, SoftNonMaxSuppression)
def cost(op: SoftNonMaxSuppression, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One comparison per score; how many overlaps are computed, only a run tells."""
    return {"FMA(F32)": inputs[1].shape.volume}


@ROWS.row(AXES, SoftNonMaxSuppression)
def axes(op: SoftNonMaxSuppression, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
