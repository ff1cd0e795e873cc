"""Linear models and support vector machines (domain ``ai.onnx.ml``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, FactError, LimitExceeded
from tract_core.model.graph import OutletId
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import PowConst
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.couple import CoupleProbabilities
from tract_onnx.ops.lookup import class_labels
from tract_onnx.ops.post_transform import (
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

MAX_CLASSES: Final = 1024
"""Classes of a support vector machine, which compares every two of them."""

_LABELS: Final = ("classlabels_strings", "classlabels_ints")


def _features(wire: Wiring) -> Wired:
    """The input as a matrix of f32."""
    x = Wired(wire, as_rows(wire, wire.input(0)))
    if x.rank != 2:
        raise FactError(f"a matrix of features is wanted, found {x.fact}")
    return x.cast(DatumType.F32)


def _matrix(node: OnnxNode, name: str, rows: int) -> Array:
    """The list of floats in an attribute as ``rows`` rows. Raises CorruptModel when they are not all full."""
    values = node.float_array(name)
    if rows < 1 or not len(values) or len(values) % rows:
        raise CorruptModel(f"{node.about(name)} has {len(values)} numbers, which do not fill {rows} rows")
    return values.reshape(rows, -1)


def _list(node: OnnxNode, name: str, *lengths: int) -> Array:
    """The list of floats in an attribute. Raises CorruptModel unless its length is one of ``lengths``."""
    values = node.float_array(name, ())
    if len(values) not in lengths:
        wanted = " or ".join(map(str, sorted(set(lengths))))
        raise node.misfit(name, f"has {len(values)} numbers", wanted)
    return values


def _times(x: Wired, columns: Array) -> Wired:
    return x.through(wire_matmul, x.operand(np.ascontiguousarray(columns)).outlet)


def _affine(x: Wired, columns: Array, constant: Array) -> Wired:
    """``x`` times a matrix of one column per result, plus a constant for each, where there are any."""
    result = _times(x, columns)
    return result + constant[None] if len(constant) else result


@onnx_op(ROWS, "LinearRegressor", domain=ML_DOMAIN)
def linear_regressor(node: OnnxNode, wire: Wiring) -> OutletId:
    """A linear function of the features for each target"""
    targets = node.integer("targets", 1)
    coefficients = _matrix(node, "coefficients", targets)
    result = _affine(_features(wire), coefficients.T, _list(node, "intercepts", 0, targets))
    return wire_post_transform(wire, post_transform(node), result.outlet)


@onnx_op(ROWS, "LinearClassifier", domain=ML_DOMAIN)
def linear_classifier(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """The label of the class whose linear function is greatest, and all of them

    Of two classes with one function, it is the second one's, where that is positive.
    """
    labels, transform = class_labels(node, _LABELS), post_transform(node)
    intercepts = _list(node, "intercepts", 0, 1, len(labels))
    alone = len(labels) == 2 and (len(intercepts) == 1 or _is_one_row(node, wire))
    rows = 1 if alone else len(labels)
    constant = _list(node, "intercepts", 0, rows)
    scores = _affine(_features(wire), _matrix(node, "coefficients", rows).T, constant)
    if not alone:
        return wire_best_label(wire, labels, scores.outlet), wire_post_transform(wire, transform, scores.outlet)
    is_second = (scores > 0).squeeze([1]).cast(DatumType.I64)
    label = wire_label(wire, labels, is_second.outlet)
    return label, wire_two_classes(wire, transform, scores.outlet, is_probability=True)


def _is_one_row(node: OnnxNode, wire: Wiring) -> bool:
    """Whether there are as many coefficients as features."""
    return len(node.float_array("coefficients")) == wire.shape(wire.input(0))[-1]


def _kernel(node: OnnxNode, x: Wired, vectors: Array) -> Wired:
    """How much each row resembles each support vector: [rows, vectors]."""
    kind = node.choice("kernel_type", ("LINEAR", "POLY", "RBF", "SIGMOID"), "LINEAR")
    given = _list(node, "kernel_params", 0, 3)
    gamma, coef0, degree = given.tolist() if len(given) else (0.0, 0.0, 0.0)
    if kind == "RBF":
        return (_distances(x, vectors) * -gamma).exp().cast(DatumType.F32)
    product = _times(x, vectors.T)
    if kind == "LINEAR":
        return product
    inner = product * gamma + coef0
    return inner.op(PowConst(degree)) if kind == "POLY" else inner.tanh()


def _distances(x: Wired, vectors: Array) -> Wired:
    """The square of how far each row is from each vector: [rows, vectors].

    By a matrix product, which takes no memory for every difference; in f64, as it subtracts numbers that are close.
    """
    x, vectors = x.cast(DatumType.F64), vectors.astype(np.float64)
    product = _times(x, -2 * vectors.T)
    lengths = x.square().sum([1])
    return (product + lengths + (vectors**2).sum(axis=1)[None]).maximum(0)


@onnx_op(ROWS, "SVMRegressor", domain=ML_DOMAIN)
def svm_regressor(node: OnnxNode, wire: Wiring) -> OutletId | Wired:
    """A weighted sum of kernels; without support vectors, of the features. With ``one_class``, its sign"""
    x, count = _features(wire), node.integer("n_supports", 0)
    rho = _list(node, "rho", 1)
    if count > 0:
        x = _kernel(node, x, _matrix(node, "support_vectors", count))
        weights = _list(node, "coefficients", count)[:, None]
    else:
        weights = _matrix(node, "coefficients", 1).T
    result = _affine(x, weights, rho)
    if node.flag("one_class"):
        return (result > 0).where(result.like(1), result.like(-1))
    return wire_post_transform(wire, post_transform(node), result.outlet)


@onnx_op(ROWS, "SVMClassifier", domain=ML_DOMAIN)
def svm_classifier(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """The class that wins most comparisons of two, and probabilities, or the outcomes of the comparisons

    Without support vectors, it is one linear function of the features per class.
    """
    labels, transform = class_labels(node, _LABELS), post_transform(node)
    per_class = node.integers("vectors_per_class", ())
    if not per_class:
        coefficients = _matrix(node, "coefficients", len(labels))
        rho = np.broadcast_to(_list(node, "rho", 1, len(labels)), len(labels))
        scores = _affine(_features(wire), coefficients.T, rho).outlet
        return wire_best_label(wire, labels, scores), wire_post_transform(wire, transform, scores)
    decisions, pairs = _decisions(node, wire, per_class, len(labels))
    label = wire_best_label(wire, labels, _wins(decisions, pairs, len(labels)).outlet)
    if node.has("prob_a"):
        scores = _probabilities(node, decisions, len(pairs)).op(CoupleProbabilities(len(labels)))
        return label, wire_post_transform(wire, transform, scores.outlet)
    if len(labels) == 2:
        return label, wire_two_classes(wire, transform, decisions.outlet, is_probability=False)
    return label, wire_post_transform(wire, transform, decisions.outlet)


_Pairs = Sequence[tuple[int, int]]


def _decisions(node: OnnxNode, wire: Wiring, per_class: Sequence[int], classes: int) -> tuple[Wired, _Pairs]:
    """For each row and each pair of classes, a number that is positive where it resembles the first one more.

    The coefficients of a support vector are those against the other classes, in their order.
    """
    if len(per_class) != classes or min(per_class) < 0 or not 2 <= classes <= MAX_CLASSES:
        kind = LimitExceeded if classes > MAX_CLASSES else CorruptModel
        raise kind(f"'vectors_per_class' is {list(per_class)[:50]} for {classes} classes, of 2 to {MAX_CLASSES}")
    count = sum(per_class)
    vectors, given = _matrix(node, "support_vectors", count), _matrix(node, "coefficients", classes - 1)
    if given.shape[1] != count:
        raise CorruptModel(f"{given.shape[1]} coefficients for each of {count} support vectors")
    pairs = list(combinations(range(classes), 2))
    starts = np.append(0, np.cumsum(per_class))
    weights = np.zeros((count, len(pairs)), np.float32)
    for pair, (i, j) in enumerate(pairs):
        weights[starts[i] : starts[i + 1], pair] = given[j - 1, starts[i] : starts[i + 1]]
        weights[starts[j] : starts[j + 1], pair] = given[i, starts[j] : starts[j + 1]]
    return _affine(_kernel(node, _features(wire), vectors), weights, _list(node, "rho", len(pairs))), pairs


def _wins(decisions: Wired, pairs: _Pairs, classes: int) -> Wired:
    """How many comparisons each class wins, less those that it would lose to nobody: [rows, classes]."""
    first_wins = (decisions > 0).cast(DatumType.F32)
    points, start = np.zeros((len(pairs), classes), np.float32), np.zeros(classes, np.float32)
    for pair, (i, j) in enumerate(pairs):
        points[pair, i], points[pair, j] = 1, -1
        start[j] += 1
    return _affine(first_wins, points, start)


def _probabilities(node: OnnxNode, decisions: Wired, pairs: int) -> Wired:
    """The probability of the first class of each pair: 1 / (1 + exp(a * decision + b))"""
    a, b = _list(node, "prob_a", pairs), _list(node, "prob_b", pairs)
    return (-(decisions * a[None] + b[None])).sigmoid()
