"""Operators on one tensor, element by element, and those that are a few of them together."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.frontend.precision import rounded_once
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import elementwise as core
from tract_core.ops.activation import Activation, wire_activation
from tract_core.ops.wired import Results, Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import TENSORFLOW, TensorflowFn, tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

_SAME: Final[dict[str, TypedOp]] = {
    "Abs": core.Abs(),
    "Acos": core.Acos(),
    "Acosh": core.Acosh(),
    "Asin": core.Asin(),
    "Asinh": core.Asinh(),
    "Atan": core.Atan(),
    "Atanh": core.Atanh(),
    "Ceil": core.Ceil(),
    "Cos": core.Cos(),
    "Cosh": core.Cosh(),
    "Erf": core.Erf(),
    "Exp": core.Exp(),
    "Floor": core.Floor(),
    "Inv": core.Recip(),
    "Invert": core.BitNot(),
    "IsInf": core.IsInf(),
    "IsNan": core.IsNan(),
    "Log": core.Ln(),
    "LogicalNot": core.Not(),
    "Neg": core.Neg(),
    "Reciprocal": core.Recip(),
    "Rint": core.RoundHalfToEven(),
    "Rsqrt": core.Rsqrt(),
    "Sigmoid": core.Sigmoid(),
    "Sign": core.Sign(),
    "Sin": core.Sin(),
    "Sinh": core.Sinh(),
    "Sqrt": core.Sqrt(),
    "Square": core.Square(),
    "Tan": core.Tan(),
    "Tanh": core.Tanh(),
}
"""Operators of TensorFlow that are one core operator, without attributes."""


def _same(op: TypedOp) -> TensorflowFn:
    def wire_same(node: GraphNode, wire: GraphWiring) -> OutletId:
        return wire.op(op, wire.input(0))

    return wire_same


for _name, _op in _SAME.items():
    ROWS.add(TENSORFLOW, _name, _same(_op))


@tf_op(
    ROWS, "CheckNumerics", "EnsureShape", "Identity", "PlaceholderWithDefault", "PreventGradient", "Print", "Snapshot"
)
@tf_op(ROWS, "StopGradient")
def identity(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X"""
    return wire.input(0)


@tf_op(ROWS, "IdentityN")
def identities(node: GraphNode, wire: GraphWiring) -> Results:
    """All inputs"""
    return wire.all_inputs()


@tf_op(ROWS, "IsFinite")
def is_finite(node: GraphNode, wire: GraphWiring) -> Wired:
    """Whether x is a number, and no infinity"""
    x = wire.tensor(0)
    return ~(x.is_nan() | x.op(core.IsInf()))


@tf_op(ROWS, "Round")
def rounded(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The nearest integer, the even one of two; integers as they are"""
    x = wire.input(0)
    return wire.op(core.RoundHalfToEven(), x) if wire.dtype(x).is_float() else x


@tf_op(ROWS, "Relu")
def relu(node: GraphNode, wire: GraphWiring) -> Wired:
    """max(x, 0)"""
    return wire.tensor(0).maximum(0)


@tf_op(ROWS, "Relu6")
def relu6(node: GraphNode, wire: GraphWiring) -> Wired:
    """X kept between 0 and 6"""
    return wire.tensor(0).maximum(0).minimum(6)


@tf_op(ROWS, "LeakyRelu")
def leaky_relu(node: GraphNode, wire: GraphWiring) -> OutletId:
    """x, or alpha * x below zero"""
    return wire.op(core.LeakyRelu(node.number("alpha", 0.2)), wire.input(0))


def _activation(wire: GraphWiring, name: str, alpha: float = 0.0) -> OutletId:
    return wire.through(wire_activation, Activation(name, alpha, 0.0), wire.input(0))


@tf_op(ROWS, "Elu")
@rounded_once()
def elu(node: GraphNode, wire: GraphWiring) -> OutletId:
    """x, or exp(x) - 1 below zero"""
    return _activation(wire, "elu", 1.0)


@tf_op(ROWS, "Selu")
@rounded_once()
def selu(node: GraphNode, wire: GraphWiring) -> Wired:
    """What Elu does with an alpha of its own, times a number, so that networks keep mean and variance"""
    return Wired(wire, _activation(wire, "elu", 1.6732632423543772)) * 1.0507009873554805


@tf_op(ROWS, "Softplus")
@rounded_once()
def softplus(node: GraphNode, wire: GraphWiring) -> OutletId:
    """log(exp(x) + 1)"""
    return _activation(wire, "softplus")


@tf_op(ROWS, "Softsign")
@rounded_once()
def softsign(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X / (1 + |x|)"""
    return _activation(wire, "softsign")


@tf_op(ROWS, "Erfc")
@rounded_once()
def erfc(node: GraphNode, wire: GraphWiring) -> Wired:
    """1 less the error function"""
    return 1 - wire.tensor(0).op(core.Erf())


@tf_op(ROWS, "Expm1")
@rounded_once()
def expm1(node: GraphNode, wire: GraphWiring) -> Wired:
    """exp(x) - 1, by the tangent of the half where the difference would lose digits"""
    x = wire.tensor(0)
    is_small = abs(x) < 0.5
    half = is_small.where(x * 0.5, 0).tanh()
    return is_small.where(half * 2 / (1 - half), x.exp() - 1)


@tf_op(ROWS, "Log1p")
@rounded_once()
def log1p(node: GraphNode, wire: GraphWiring) -> Wired:
    """log(1 + x); near 0, what the sum rounds off is made up for"""
    return wire_log1p(wire.tensor(0))


def wire_log1p(x: Wired) -> Wired:
    """log(1 + x)"""
    total = x + 1
    added = total - 1
    is_near = (abs(x) < 0.5) & added.ne(0)
    near = total.log() * (x / is_near.where(added, 1))
    return added.eq(0).where(x, is_near.where(near, total.log()))


@tf_op(ROWS, "Bucketize")
def bucketize(node: GraphNode, wire: GraphWiring) -> Wired:
    """How many of the boundaries are not above x"""
    x, boundaries = wire.tensor(0), np.array(node.numbers("boundaries"), np.float32)
    if not len(boundaries):
        return x.cast(DatumType.I32) * 0
    kind = x.dtype if x.dtype.is_float() else DatumType.F32
    above = x.cast(kind)[..., None] >= Wired(wire, wire.const(boundaries.astype(kind.numpy)))
    return above.cast(DatumType.I32).sum([x.rank]).squeeze([x.rank])


@tf_op(ROWS, "ClipByValue")
def clip(node: GraphNode, wire: GraphWiring) -> Wired:
    """X kept between two tensors"""
    return wire.tensor(0).minimum(wire.tensor(2)).maximum(wire.tensor(1))
