"""Boxes from what a network says of anchors: decoded, and those that cover others of one class left out.

Source: what the reference kernel of TFLite_Detection_PostProcess computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class DetectionPostProcess(TypedOp):
    """Boxes [1, n, 4] as (top, left, bottom, right), classes and scores [1, n], and how many there are, [1], in f32.

    Inputs, f32: what a network says of anchors, [1, anchors, 4 or more] (moves and sizes as y, x, h, w, in units of
    ``scales``), scores [1, anchors, classes, or one more for what is in front of them], and anchors [anchors, 4].

    n is ``most * per_box``. ``by_class``: whether boxes are left out class by class, at most ``per_class`` staying of
    each, and ``most`` in all; else by their highest score, and each is there with its ``per_box`` likeliest classes.
    ``score``: the least that counts; ``overlap``: how much of the union of two boxes may be in both.
    """

    most: int
    per_box: int
    per_class: int
    by_class: bool
    classes: int
    score: float
    overlap: float
    scales: tuple[float, float, float, float]

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Four tensors in f32. Raises FactError when the inputs do not fit."""
        boxes, scores, anchors = arity(self, inputs, 3)
        ranks = boxes.rank, scores.rank, anchors.rank
        if ranks != (3, 3, 2) or any(one.datum_type is not DatumType.F32 for one in inputs):
            raise FactError(f"{self.name} wants f32 of ranks 3, 3 and 2, found {boxes}, {scores} and {anchors}")
        wanted = 1, anchors.shape[0]
        sizes = [pair for one in (boxes, scores) for pair in zip(one.shape[:2], wanted, strict=True)]
        if not all(may_equal(*pair) for pair in sizes) or not may_equal(anchors.shape[1], 4):
            raise FactError(f"{self.name} of one image: {boxes} and {scores} do not fit anchors {anchors}")
        known = boxes.shape[2], scores.shape[2]
        if not all(isinstance(one, int) for one in known):
            raise FactError(f"{self.name} wants to know how many classes there are, found {scores}")
        if int(known[0]) < 4 or not 0 <= int(known[1]) - self.classes <= 1:
            raise FactError(f"{self.name} of {self.classes} classes: found {boxes} and {scores}")
        count = self.most * self.per_box
        return tuple(TypedFact.of(DatumType.F32, shape) for shape in ((1, count, 4), (1, count), (1, count), (1,)))


@ROWS.row(REFERENCE, DetectionPostProcess)
def reference(op: DetectionPostProcess, boxes: Array, scores: Array, anchors: Array) -> tuple[Array, ...]:
    """Boxes in the order of their scores; zeros behind them."""
    decoded = _decoded(op, boxes[0, :, :4], anchors)
    own = scores[0, :, scores.shape[2] - op.classes :]
    found = _class_by_class(op, decoded, own) if op.by_class else _all_together(op, decoded, own)
    count = op.most * op.per_box
    results = [np.zeros((1, count, 4), np.float32), np.zeros((1, count), np.float32), np.zeros((1, count), np.float32)]
    for place, box, kind, score in found[0]:
        results[0][0, place], results[1][0, place], results[2][0, place] = decoded[box], kind, score
    return (*results, np.array([found[1]], np.float32))


_Found = tuple[list[tuple[int, int, int, float]], int]
"""Place, box, class and score of each result, and how many boxes there are."""


def _decoded(op: DetectionPostProcess, boxes: Array, anchors: Array) -> Array:
    scales = np.array(op.scales, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = boxes[:, :2] / scales[:2] * anchors[:, 2:] + anchors[:, :2]
        half = np.float32(0.5) * np.exp(boxes[:, 2:] / scales[2:]) * anchors[:, 2:]
        return np.concatenate([middle - half, middle + half], 1).astype(np.float32)


def _all_together(op: DetectionPostProcess, boxes: Array, scores: Array) -> _Found:
    count = min(op.per_box, op.classes)
    order = np.argsort(-scores, 1, kind="stable")[:, :count]
    highest = scores.max(1, initial=-np.inf) if op.classes else np.zeros(len(scores), np.float32)
    chosen = _chosen(op, boxes, highest, op.most)
    found = [
        (op.per_box * place + column, box, int(order[box, column]), float(scores[box, order[box, column]]))
        for place, box in enumerate(chosen)
        for column in range(count)
    ]
    return found, len(chosen)


def _class_by_class(op: DetectionPostProcess, boxes: Array, scores: Array) -> _Found:
    best: list[tuple[int, int, float]] = []
    for kind in range(op.classes):
        chosen = _chosen(op, boxes, scores[:, kind], op.per_class)
        best += [(box, kind, float(scores[box, kind])) for box in chosen]
        best = sorted(best, key=lambda one: -one[2])[: op.most]
    return [(place, *one) for place, one in enumerate(best)], len(best)


def _chosen(op: DetectionPostProcess, boxes: Array, scores: Array, most: int) -> list[int]:
    """The boxes that stay, the highest score first."""
    places = np.flatnonzero(scores >= np.float32(op.score))
    places = places[np.argsort(-scores[places], kind="stable")]
    found: list[int] = []
    while places.size and len(found) < most:
        check_run_time()
        first, places = int(places[0]), places[1:]
        found.append(first)
        places = places[~(_overlap(boxes[first], boxes[places]) > np.float32(op.overlap))]
    return found


def _overlap(one: Array, others: Array) -> Array:
    """The part of the union of two boxes that is in both; 0 for one without an area."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        area = (one[2] - one[0]) * (one[3] - one[1])
        areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
        sides = np.minimum(one[2:], others[:, 2:]) - np.maximum(one[:2], others[:, :2])
        common = np.maximum(sides[:, 0], 0) * np.maximum(sides[:, 1], 0)
        return np.where((area <= 0) | (areas <= 0), 0, common / (area + areas - common))


@ROWS.row(MEMORY, DetectionPostProcess)
def memory(op: DetectionPostProcess, made: int, *inputs: Array) -> int:
    """Scores in their order, decoded boxes, and what comparing one with all takes"""
    return 8 * (3 * inputs[1].size + 12 * inputs[2].size) + made


@ROWS.row(COST, DetectionPostProcess)
def cost(op: DetectionPostProcess, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Each box that stays is compared with all."""
    return {"FMA(F32)": inputs[1].shape.volume + inputs[2].shape[0] * (8 * op.most)}


@ROWS.row(AXES, DetectionPostProcess)
def axes(op: DetectionPostProcess, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing is said: all anchors are looked at together."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
