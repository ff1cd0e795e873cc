"""Ensembles of decision trees (domain ``ai.onnx.ml``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.trees import Aggregate, TreeEnsemble
from tract_onnx.ops.forest import checked_targets, numbers, read_named, read_numbered
from tract_onnx.ops.lookup import class_labels
from tract_onnx.ops.post_transform import (
    POST_TRANSFORMS,
    as_rows,
    post_transform,
    wire_best_label,
    wire_label,
    wire_post_transform,
    wire_two_classes,
)
from tract_onnx.registry import ML_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

_AGGREGATES: Final = (Aggregate.AVERAGE, Aggregate.SUM, Aggregate.MIN, Aggregate.MAX)
"""What the numbers of TreeEnsemble's attribute ``aggregate_function`` stand for."""


@onnx_op(ROWS, "TreeEnsembleRegressor", domain=ML_DOMAIN)
def tree_ensemble_regressor(node: OnnxNode, wire: Wiring) -> OutletId:
    """The votes of all trees for each target, and the base values"""
    targets = checked_targets(node.integer("n_targets"))
    aggregate = node.member("aggregate_function", Aggregate, Aggregate.SUM)
    op = TreeEnsemble(read_named(node, "target", targets), targets, aggregate)
    scores = _with_base(wire, wire.op(op, as_rows(wire, wire.input(0))), _base_values(node, (1, targets)))
    return wire.cast(wire_post_transform(wire, post_transform(node), scores), DatumType.F32)


def _base_values(node: OnnxNode, wanted: Sequence[int]) -> Array:
    base = numbers(node, "base_values")
    if len(base) not in (0, *wanted):
        counts = " or ".join(map(str, dict.fromkeys(wanted)))
        raise CorruptModel(f"there are {len(base)} base values, wanted {counts}")
    return base.astype(np.float64)


def _with_base(wire: Wiring, scores: OutletId, base: Array) -> OutletId:
    return wire.op(Add(), scores, wire.const(base[None])) if len(base) else scores


@onnx_op(ROWS, "TreeEnsembleClassifier", domain=ML_DOMAIN)
def tree_ensemble_classifier(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """The label of the class with most votes for each row, and the votes"""
    labels = class_labels(node, ("classlabels_strings", "classlabels_int64s"))
    ids, transform = np.unique(node.int_array("class_ids")), post_transform(node)
    forest = read_named(node, "class", checked_targets(len(labels)))
    base = _base_values(node, (1, len(labels)) if len(labels) == 2 else (len(labels),))
    votes = wire.op(TreeEnsemble(forest, len(labels), Aggregate.SUM), as_rows(wire, wire.input(0)))
    if len(labels) == 2 and len(ids) == 1:
        is_probability = bool((forest.weight.array >= 0).all())
        label, scores = _binary(transform, Wired(wire, votes), base, voted=int(ids[0]), is_probability=is_probability)
        return wire_label(wire, labels, label), wire.cast(scores, DatumType.F32)
    votes = _with_base(wire, votes, base)
    scores = wire.cast(wire_post_transform(wire, transform, votes), DatumType.F32)
    return wire_best_label(wire, labels, votes), scores


def _binary(
    transform: str, votes: Wired, base: Array, *, voted: int, is_probability: bool
) -> tuple[OutletId, OutletId]:
    """The class of each row (0 or 1), and the scores of both, where all trees vote for one class.

    Such votes speak for the second class, under whichever number: it is the answer from one half on where they can be
    probabilities, else when they are positive.
    """
    score = votes.part(1, voted, voted + 1)
    if len(base):
        score = score + base[None, -1:]
    is_second = (score > (0.5 if is_probability else 0.0)).squeeze([1]).cast(DatumType.I64).outlet
    if voted == 0:
        return is_second, wire_two_classes(votes.wire, transform, score.outlet, is_probability=is_probability)
    other = votes.part(1, 0, 1)
    if len(base) == 2:
        other = other + base[None, :1]
    return is_second, wire_post_transform(votes.wire, transform, other.concat([score], 1).outlet)


@onnx_op(ROWS, "TreeEnsemble", since=5, domain=ML_DOMAIN)
def tree_ensemble(node: OnnxNode, wire: Wiring) -> OutletId:
    """The votes of all trees for each target"""
    targets = checked_targets(node.integer("n_targets"))
    aggregate, transform = node.integer("aggregate_function", 1), node.integer("post_transform", 0)
    if not 0 <= aggregate < len(_AGGREGATES) or not 0 <= transform < len(POST_TRANSFORMS):
        raise Unsupported(
            f"'aggregate_function' is {aggregate} and 'post_transform' is {transform}, "
            f"wanted 0 to {len(_AGGREGATES) - 1} and 0 to {len(POST_TRANSFORMS) - 1}"
        )
    x = wire.input(0)
    op = TreeEnsemble(read_numbered(node, targets), targets, _AGGREGATES[aggregate])
    scores = wire_post_transform(wire, POST_TRANSFORMS[transform], wire.op(op, as_rows(wire, x)))
    return wire.cast(scores, wire.dtype(x))
