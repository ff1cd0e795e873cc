"""Numbers drawn at random."""

from __future__ import annotations

import math

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Lt
from tract_core.ops.random import Distribution, Dropout, Multinomial, RandomLike, RandomTensor
from tract_core.ops.wired import Results
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.elementwise import dropout_1
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


def _seed(node: OnnxNode) -> int | None:
    if not node.has("seed"):
        return None
    seed = node.number("seed")
    if not math.isfinite(seed):
        raise CorruptModel(f"the seed is {seed}, wanted a number")
    return int(seed)


def _parameters(node: OnnxNode) -> tuple[Distribution, float, float]:
    if node.op_type.startswith("RandomUniform"):
        return Distribution.UNIFORM, node.number("low", 0.0), node.number("high", 1.0)
    return Distribution.NORMAL, node.number("mean", 0.0), node.number("scale", 1.0)


@onnx_op(ROWS, "RandomNormal", "RandomUniform")
def random_tensor(node: OnnxNode, wire: Wiring) -> OutletId:
    """The shape is an attribute"""
    kind = node.element_type("dtype", DatumType.F32)
    return wire.op(RandomTensor(*_parameters(node), kind, _seed(node), node.integers("shape")))


@onnx_op(ROWS, "RandomNormalLike", "RandomUniformLike")
def random_like(node: OnnxNode, wire: Wiring) -> OutletId:
    """Shape, and type where none is given, are those of the input"""
    x = wire.input(0)
    kind = node.element_type("dtype", wire.dtype(x).storage)
    return wire.op(RandomLike(*_parameters(node), kind, _seed(node)), x)


@onnx_op(ROWS, "Bernoulli", since=15)
def bernoulli(node: OnnxNode, wire: Wiring) -> OutletId:
    """1 as often as the element says, else 0

    By the operator's text; the function in the standard that should define it draws 0 as often.
    """
    x = wire.input(0)
    to = node.element_type("dtype", wire.dtype(x).storage)
    share = wire.cast(x, DatumType.F64)
    drawn = wire.op(RandomLike(Distribution.UNIFORM, 0.0, 1.0, DatumType.F64, _seed(node)), share)
    return wire.cast(wire.op(Lt(), drawn, share), to)


@onnx_op(ROWS, "Multinomial", since=7)
def multinomial(node: OnnxNode, wire: Wiring) -> OutletId:
    """Places, drawn as often as the exponentials of their elements say"""
    op = Multinomial(node.integer("sample_size", 1), node.element_type("dtype", DatumType.I32), _seed(node))
    return wire.op(op, wire.input(0))


@onnx_op(ROWS, "Dropout", since=12)
def dropout_12(node: OnnxNode, wire: Wiring) -> Results:
    """As `dropout_1`, but in training mode, or where only a run tells, elements are dropped"""
    training = wire.optional_input(2)
    known = None if training is None else wire.constant(training)
    if training is None or (known is not None and not known.any()):
        return dropout_1(node, wire)
    ratio = wire.optional_input(1)
    ratio = wire.const(np.array(0.5, np.float32)) if ratio is None else wire.number(ratio)
    seed = node.integer("seed") if node.has("seed") else None
    return wire.ops(Dropout(seed), wire.input(0), ratio, wire.number(training))
