"""Boxes that do not overlap much with better ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import FactError, LimitExceeded, Unsupported
from tract_core.frontend.wiring import MAX_COUNT
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Rem
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather, GatherNd
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.ops.pad import PadConstant
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.wired import Results, Wired
from tract_core.ops.wiring_dyn import wire_dyn_pad, wire_pad, wire_topk
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


def _number(wire: GraphWiring, slot: int) -> OutletId:
    return wire.number(wire.input(slot))


def _kept(wire: GraphWiring, has_least: bool) -> Wired:
    """The numbers of the boxes that are kept, the best first."""
    boxes, scores = wire.tensor(0), wire.tensor(1)
    if boxes.rank != 2 or scores.rank != 1 or not scores.dtype.is_float():
        raise FactError(f"boxes and their scores are wanted, found {boxes.fact} and {scores.fact}")
    most, overlap = wire.i64(_number(wire, 2)), _number(wire, 3)
    least = _number(wire, 4) if has_least else wire.const(np.array(-np.inf, scores.dtype.numpy))
    op = NonMaxSuppression(False, wire.symbol("boxes"))
    given = (boxes[None].outlet, scores[None, None].outlet, most, overlap, least)
    return Wired(wire, wire.op(op, *given))[:, 2]


@tf_op(ROWS, "NonMaxSuppressionV2")
def without_least_score(node: GraphNode, wire: GraphWiring) -> Wired:
    """The numbers of the boxes that are kept"""
    return _kept(wire, False).cast(DatumType.I32)


@tf_op(ROWS, "NonMaxSuppressionV3")
def with_least_score(node: GraphNode, wire: GraphWiring) -> Wired:
    """The same of boxes whose score is above the fifth input"""
    return _kept(wire, True).cast(DatumType.I32)


@tf_op(ROWS, "NonMaxSuppressionV4")
def with_count(node: GraphNode, wire: GraphWiring) -> Results:
    """As V3, with zeros behind where an attribute asks for that, and the number of boxes"""
    kept = _kept(wire, True)
    return _padded(node, wire, kept.cast(DatumType.I32)), _count(kept)


@tf_op(ROWS, "NonMaxSuppressionV5")
def with_scores(node: GraphNode, wire: GraphWiring) -> Results:
    """As V4, with the scores of the boxes; these are not made smaller where boxes overlap"""
    sigma = wire.known(wire.input(5), "sigma of NonMaxSuppressionV5")
    if sigma.any():
        raise Unsupported(f"NonMaxSuppressionV5 makes scores of overlapping boxes smaller: sigma is {float(sigma)}")
    kept = _kept(wire, True)
    scores = wire.tensor(1).op(Gather(0), kept)
    return _padded(node, wire, kept.cast(DatumType.I32)), _padded(node, wire, scores), _count(kept)


def _count(kept: Wired) -> Wired:
    return kept.with_outlet(kept.wire.const(kept.shape[0])).cast(DatumType.I32)


def _padded(node: GraphNode, wire: GraphWiring, x: Wired) -> Wired:
    """With zeros behind it, so that there are as many as could be kept."""
    if not node.flag("pad_to_max_output_size"):
        return x
    most = Wired(wire, wire.i64(_number(wire, 2)))
    missing = (most - x.with_outlet(wire.const(x.shape[0]))).unsqueeze([0])
    pads = Wired(wire, wire.const((0,))).op(TypedConcat(0), missing)
    mode = PadConstant(Constant(np.zeros((), x.dtype.numpy)))
    found = x.through(wire_dyn_pad, pads.outlet, mode)
    known = wire.dims(most.outlet)
    return found if known is None else found.reshape((known[0],))


@tf_op(ROWS, "CombinedNonMaxSuppression")
def combined(node: GraphNode, wire: GraphWiring) -> Sequence[Wired]:
    """For each image, the best boxes of all classes: boxes, scores, classes, and how many they are"""
    boxes, scores = wire.tensor(0), wire.tensor(1)
    if boxes.rank != 4 or scores.rank != 3 or not scores.dtype.is_float():
        raise FactError(f"boxes of 4 axes and scores of 3 are wanted, found {boxes.fact} and {scores.fact}")
    if is_symbolic(boxes.shape[2]):
        raise Unsupported(f"whether all classes share the boxes {boxes.fact} must be known when the model is loaded")
    images, count, classes = scores.shape
    places, found = _best(node, wire, boxes, scores)
    is_there = found > float("-inf")
    each = Wired(wire, wire.const(count)).unsqueeze(range(2))
    if boxes.shape[2] == 1:
        candidates, box = boxes.squeeze([2]), places.op(Rem(), each)
    else:
        candidates, box = boxes.transpose((0, 2, 1, 3)).reshape((images, classes * count, 4)), places
    box = is_there.where(box, 0)
    corners = candidates.op(GatherNd(1), box[..., None])
    if node.flag("clip_boxes", True):
        corners = corners.maximum(0).minimum(1)
    return (
        is_there[..., None].where(corners, 0),
        is_there.where(found, 0),
        is_there.where((places / each).cast(scores.dtype), 0),
        is_there.cast(DatumType.I32).sum([1]).squeeze([1]),
    )


def _best(node: GraphNode, wire: GraphWiring, boxes: Wired, scores: Wired) -> tuple[Wired, Wired]:
    """For each image, the places of the best boxes among those of all classes, and their scores: -inf where none is."""
    images, count, classes = scores.shape
    total = _total(node, wire, classes)
    by_class = scores.transpose((0, 2, 1))
    if boxes.shape[2] == 1:
        given = boxes.squeeze([2])
    else:  # each class of an image is an image of its own
        given = boxes.transpose((0, 2, 1, 3)).reshape((images * classes, count, 4))
        by_class = by_class.reshape((images * classes, 1, count))
    op = NonMaxSuppression(False, wire.symbol("boxes"))
    most, overlap, least = wire.i64(_number(wire, 2)), _number(wire, 4), _number(wire, 5)
    kept = Wired(wire, wire.op(op, given.outlet, by_class.outlet, most, overlap, least))
    none = by_class.like(float("-inf")).broadcast(by_class.shape)
    only_kept = none.op(ScatterNd(), kept, by_class.op(GatherNd(0), kept)).reshape((images, classes * count))
    nothing = PadConstant(Constant(np.array(-np.inf, scores.dtype.numpy)))
    padded = only_kept.through(wire_pad, [(0, 0), (0, total)], nothing)
    found, places = wire.through(wire_topk, padded.outlet, wire.const(total), 1, largest=True)
    return Wired(wire, places), Wired(wire, found)


def _total(node: GraphNode, wire: GraphWiring, classes: Dim) -> int:
    """How many boxes of an image are given back."""
    (total,) = wire.known_ints(_number(wire, 3), "number of boxes")
    if node.flag("pad_per_class") and not is_symbolic(classes):
        (each,) = wire.known_ints(_number(wire, 2), "number of boxes of a class")
        total = min(total, each * int(classes))
    if not 0 < total <= MAX_COUNT:
        raise LimitExceeded(f"{total} boxes of each image are wanted, from 1 to {MAX_COUNT} are allowed")
    return total
