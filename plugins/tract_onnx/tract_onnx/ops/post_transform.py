"""What the machine-learning operators of ONNX do with scores at last: probabilities of them, and labels."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Neg, Sigmoid
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.probit import Probit

POST_TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""The values of the attribute ``post_transform``; those of TreeEnsemble are the positions in this list."""


def post_transform(node: OnnxNode) -> str:
    """The node's attribute. Raises Unsupported for a value that the standard does not have."""
    return node.choice("post_transform", POST_TRANSFORMS, "NONE")


def wire_post_transform(wire: NodeWiring, name: str, scores: OutletId) -> OutletId:
    """``scores`` ([rows, classes], floats) transformed row by row."""
    if name == "SOFTMAX":
        return wire.op(Softmax((1,)), scores)
    if name == "LOGISTIC":
        return wire.op(Sigmoid(), scores)
    if name == "PROBIT":
        return wire.op(Probit(), scores)
    return _softmax_of_others(Wired(wire, scores)).outlet if name == "SOFTMAX_ZERO" else scores


def _softmax_of_others(scores: Wired) -> Wired:
    """A softmax over the scores that are not 0; these stay 0."""
    counts = scores.ne(0)
    return counts.where(counts.where(scores, -np.inf).op(Softmax((1,))), 0)


def wire_best_label(wire: NodeWiring, labels: Array, scores: OutletId) -> OutletId:
    """For each row, the label of the class with the highest score; the first one of several."""
    best = wire.op(Reduce((1,), Reducer.ARG_MAX_FIRST), scores)
    return wire_label(wire, labels, wire.squeeze(best, [1]))


def wire_label(wire: NodeWiring, labels: Array, classes: OutletId) -> OutletId:
    """The labels of classes, which are given by number."""
    return wire.op(Gather(0), wire.const(labels), classes)


def wire_two_classes(wire: NodeWiring, name: str, score: OutletId, *, is_probability: bool) -> OutletId:
    """The scores of two classes, from that of the second one ([rows, 1]), transformed.

    The first one's score is what is left to 1 of a probability, else the opposite. Those who export models rely on
    softmax leaving such a pair alone.
    """
    if name == "LOGISTIC":
        first, second = wire.op(Sigmoid(), wire.op(Neg(), score)), wire.op(Sigmoid(), score)
        return wire.op(TypedConcat(1), first, second)
    first = wire.op(Sub(), wire.scalar(1, score), score) if is_probability else wire.op(Neg(), score)
    pair = wire.op(TypedConcat(1), first, score)
    return wire_post_transform(wire, name, pair) if name == "PROBIT" else pair


def as_rows(wire: NodeWiring, x: OutletId) -> OutletId:
    """Features as a matrix: a list of them is one row."""
    return wire.op(AddAxis(0), x) if wire.rank(x) == 1 else x


def as_floats(wire: NodeWiring, x: OutletId) -> OutletId:
    """Features in the type in which the machine-learning operators compute."""
    return wire.cast(x, DatumType.F64 if wire.dtype(x) is DatumType.F64 else DatumType.F32)
