"""Operators on one tensor, element by element."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import elementwise as core
from tract_core.ops.activation import Activation, wire_activation
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import ACTIVATIONS
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import TFLITE, TfliteFn, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_SAME: Final[dict[str, TypedOp]] = {
    "ABS": core.Abs(),
    "CEIL": core.Ceil(),
    "COS": core.Cos(),
    "EXP": core.Exp(),
    "FLOOR": core.Floor(),
    "HARD_SWISH": core.HardSwish(),
    "LOG": core.Ln(),
    "LOGICAL_NOT": core.Not(),
    "LOGISTIC": core.Sigmoid(),
    "NEG": core.Neg(),
    "ROUND": core.RoundHalfToEven(),
    "RSQRT": core.Rsqrt(),
    "SIGN": core.Sign(),
    "SIN": core.Sin(),
    "SQRT": core.Sqrt(),
    "SQUARE": core.Square(),
    "TANH": core.Tanh(),
}
"""Operators that are one core operator, without options."""


def _same(op: TypedOp) -> TfliteFn:
    def wire_same(node: TfliteNode, wire: Wiring) -> OutletId:
        return wire.op(op, wire.input(0))

    return wire_same


for _name, _op in _SAME.items():
    ROWS.add(TFLITE, _name, _same(_op))


@tflite_op(ROWS, "RELU", "RELU6", "RELU_N1_TO_1")
def relu(node: TfliteNode, wire: Wiring) -> Wired:
    """The element, kept between two ends"""
    return ACTIVATIONS[node.op_type](wire.tensor(0))


@tflite_op(ROWS, "RELU_0_TO_1")
def relu_0_to_1(node: TfliteNode, wire: Wiring) -> Wired:
    """The element, kept between 0 and 1"""
    return wire.tensor(0).maximum(0).minimum(1)


@tflite_op(ROWS, "ELU")
def elu(node: TfliteNode, wire: Wiring) -> OutletId:
    """x, or exp(x) - 1 below zero"""
    return wire.through(wire_activation, Activation("elu", 1.0), wire.input(0))


@tflite_op(ROWS, "GELU")
def gelu(node: TfliteNode, wire: Wiring) -> OutletId:
    """x/2 * (1 + erf(x/sqrt(2))), or the form with tanh"""
    return wire.op(core.GeluApproximate() if node.flag("approximate") else core.GeluExact(), wire.input(0))


@tflite_op(ROWS, "LEAKY_RELU")
def leaky_relu(node: TfliteNode, wire: Wiring) -> OutletId:
    """x, or alpha * x below zero"""
    return wire.op(core.LeakyRelu(node.number("alpha", 0.0)), wire.input(0))


@tflite_op(ROWS, "PRELU")
def prelu(node: TfliteNode, wire: Wiring) -> Wired:
    """x, or slope * x below zero"""
    x, slope = wire.tensor(0), wire.tensor(1)
    return (x >= 0).where(x, x * slope)
