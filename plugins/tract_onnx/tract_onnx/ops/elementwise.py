"""Operators on one tensor, element by element, and those that are a few of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.frontend.precision import rounded_once
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import elementwise as core
from tract_core.ops.activation import Activation, wire_activation
from tract_core.ops.binary import Gt, Max, Min, Mul
from tract_core.ops.rounding import greatest
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import ONNX, OnnxFn, onnx_op, row_key
from tract_onnx.wiring import Wiring

ROWS = Rows()

_SAME: Final[dict[str, TypedOp]] = {
    "Abs": core.Abs(),
    "Acos": core.Acos(),
    "Acosh": core.Acosh(),
    "Asin": core.Asin(),
    "Asinh": core.Asinh(),
    "Atan": core.Atan(),
    "Atanh": core.Atanh(),
    "BitwiseNot": core.BitNot(),
    "Ceil": core.Ceil(),
    "Cos": core.Cos(),
    "Cosh": core.Cosh(),
    "Exp": core.Exp(),
    "Floor": core.Floor(),
    "HardSwish": core.HardSwish(),
    "IsNaN": core.IsNan(),
    "Log": core.Ln(),
    "Neg": core.Neg(),
    "Not": core.Not(),
    "Reciprocal": core.Recip(),
    "Round": core.RoundHalfToEven(),
    "Rsqrt": core.Rsqrt(),
    "Sigmoid": core.Sigmoid(),
    "Sign": core.Sign(),
    "Sin": core.Sin(),
    "Sinh": core.Sinh(),
    "Sqrt": core.Sqrt(),
    "Tan": core.Tan(),
    "Tanh": core.Tanh(),
}
"""ONNX operators that are one core operator, without attributes."""


def _same(op: TypedOp) -> OnnxFn:
    def wire_same(node: OnnxNode, wire: Wiring) -> OutletId:
        return wire.op(op, wire.input(0))

    return wire_same


for _name, _op in _SAME.items():
    ROWS.add(ONNX, row_key(_name, 1), _same(_op))


@onnx_op(ROWS, "Identity")
def identity(node: OnnxNode, wire: Wiring) -> OutletId:
    """X"""
    return wire.input(0)


@onnx_op(ROWS, "Erf")
def erf(node: OnnxNode, wire: Wiring) -> OutletId:
    """The error function; that of integers is cut off at the point"""
    x = wire.input(0)
    return wire.cast(wire.op(core.Erf(), _as_floats(wire, x)), wire.dtype(x))


def _as_floats(wire: Wiring, x: OutletId) -> OutletId:
    return x if wire.dtype(x).is_float() else wire.cast(x, DatumType.F64)


@onnx_op(ROWS, "Dropout")
def dropout_1(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """x: nothing is dropped when a model is used; every element of the mask is true"""
    x = wire.input(0)
    if not node.wants_output(1):
        return (x,)
    kind = wire.dtype(x) if node.version < 10 else DatumType.BOOL
    true = wire.cast(wire.const(1), kind)
    return x, wire.broadcast(true, wire.shape(x))


@onnx_op(ROWS, "Relu")
def relu(node: OnnxNode, wire: Wiring) -> Wired:
    """max(x, 0)"""
    return wire.tensor(0).maximum(0)


@onnx_op(ROWS, "LeakyRelu")
def leaky_relu(node: OnnxNode, wire: Wiring) -> OutletId:
    """x, or alpha * x below zero"""
    return wire.op(core.LeakyRelu(node.number("alpha", 0.01)), wire.input(0))


@onnx_op(ROWS, "PRelu")
def prelu(node: OnnxNode, wire: Wiring) -> OutletId:
    """X, or slope * x below zero"""
    x, slope = wire.input(0), wire.input(1)
    if node.version < 7 and wire.rank(slope) == 1:
        # Before it was broadcast as usual, the slope was one number, or one per channel.
        slope = wire.unsqueeze(slope, list(range(1, wire.rank(x) - 1)))
    wire.require_shape("slope", slope, wire.shape(x), stretches=True)
    return wire.select(wire.op(Gt(), wire.scalar(0, x), x), wire.binary(Mul(), x, slope), x)


def _activation(wire: Wiring, name: str, alpha: float = 0.0, beta: float = 0.0) -> OutletId:
    return wire.through(wire_activation, Activation(name, alpha, beta), wire.input(0))


@onnx_op(ROWS, "ThresholdedRelu")
def thresholded_relu(node: OnnxNode, wire: Wiring) -> OutletId:
    """X where it is above alpha, else 0"""
    return _activation(wire, "thresholdedrelu", node.number("alpha", 1.0))


@onnx_op(ROWS, "Elu")
@rounded_once()
def elu(node: OnnxNode, wire: Wiring) -> OutletId:
    """x, or alpha * (exp(x) - 1) below zero"""
    return _activation(wire, "elu", node.number("alpha", 1.0))


@onnx_op(ROWS, "Selu")
@rounded_once()
def selu_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """Gamma times what Elu does; the default values have a few digits only"""
    return _selu(node, wire, alpha=1.6732, gamma=1.0507)


@onnx_op(ROWS, "Selu", since=6)
@rounded_once()
def selu_6(node: OnnxNode, wire: Wiring) -> OutletId:
    """Gamma times what Elu does"""
    return _selu(node, wire, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875)


def _selu(node: OnnxNode, wire: Wiring, *, alpha: float, gamma: float) -> OutletId:
    result = _activation(wire, "elu", node.number("alpha", alpha))
    return wire.op(Mul(), result, wire.scalar(node.number("gamma", gamma), result))


@onnx_op(ROWS, "HardSigmoid")
@rounded_once()
def hard_sigmoid(node: OnnxNode, wire: Wiring) -> OutletId:
    """Alpha * x + beta, kept between 0 and 1"""
    return _activation(wire, "hardsigmoid", node.number("alpha", 0.2), node.number("beta", 0.5))


@onnx_op(ROWS, "Softplus")
@rounded_once()
def softplus(node: OnnxNode, wire: Wiring) -> OutletId:
    """log(exp(x) + 1)"""
    return _activation(wire, "softplus")


@onnx_op(ROWS, "Softsign")
@rounded_once()
def softsign(node: OnnxNode, wire: Wiring) -> OutletId:
    """X / (1 + |x|)"""
    return _activation(wire, "softsign")


@onnx_op(ROWS, "Mish")
@rounded_once()
def mish(node: OnnxNode, wire: Wiring) -> OutletId:
    """X * tanh(softplus(x))"""
    return wire.op(Mul(), wire.input(0), wire.op(core.Tanh(), _activation(wire, "softplus")))


@onnx_op(ROWS, "Celu")
@rounded_once()
def celu(node: OnnxNode, wire: Wiring) -> Wired:
    """x, or alpha * (exp(x / alpha) - 1) below zero"""
    x, alpha = wire.tensor(0), node.number("alpha", 1.0)
    zero = x.like(0)
    below = (x.minimum(zero) / alpha).exp() - 1
    return x.maximum(zero) + below * alpha


@onnx_op(ROWS, "Swish", since=24)
@rounded_once()
def swish(node: OnnxNode, wire: Wiring) -> Wired:
    """X * sigmoid(alpha * x)"""
    x, alpha = wire.tensor(0), node.number("alpha", 1.0)
    return x.op(core.Silu()) if alpha == 1 else x * (x * alpha).sigmoid()


@onnx_op(ROWS, "Gelu", since=20)
def gelu(node: OnnxNode, wire: Wiring) -> OutletId:
    """x/2 * (1 + erf(x/sqrt(2))), or the form with tanh"""
    by_tanh = node.choice("approximate", ("none", "tanh"), "none") == "tanh"
    return wire.op(core.GeluApproximate() if by_tanh else core.GeluExact(), wire.input(0))


@onnx_op(ROWS, "Shrink", since=9)
def shrink(node: OnnxNode, wire: Wiring) -> Wired:
    """X + bias below -lambd, x - bias above lambd, else 0; computed in floats"""
    x = Wired(wire, _as_floats(wire, wire.input(0)))
    limit, bias = node.number("lambd", 0.5), node.number("bias", 0.0)
    above = (x > limit).where(x - bias, 0)
    return (x < -limit).where(x + bias, above).cast(wire.dtype(wire.input(0)))


@onnx_op(ROWS, "IsInf", since=10)
def is_inf(node: OnnxNode, wire: Wiring) -> OutletId:
    """Whether x is infinite, of the signs asked for"""
    op = core.IsInf(node.flag("detect_positive", True), node.flag("detect_negative", True))
    return wire.op(op, wire.input(0))


@onnx_op(ROWS, "Clip")
def clip_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """X kept between two attributes"""
    x = wire.input(0)
    low, high = (wire.scalar(node.number(name), x) if node.has(name) else None for name in ("min", "max"))
    return _clip(wire, x, low, high)


@onnx_op(ROWS, "Clip", since=6)
def clip_6(node: OnnxNode, wire: Wiring) -> OutletId:
    """X kept between two attributes, by default the ends of f32"""
    x, end = wire.input(0), greatest(DatumType.F32)
    low, high = (wire.scalar(node.number(name, limit), x) for name, limit in (("min", -end), ("max", end)))
    return _clip(wire, x, low, high)


@onnx_op(ROWS, "Clip", since=11)
def clip_11(node: OnnxNode, wire: Wiring) -> OutletId:
    """X kept between two inputs, by default the ends of its type, which only infinities are beyond"""
    x, low, high = wire.input(0), wire.optional_input(1), wire.optional_input(2)
    if wire.dtype(x).is_float():
        end = greatest(wire.dtype(x))
        low = wire.scalar(-end, x) if low is None else low
        high = wire.scalar(end, x) if high is None else high
    return _clip(wire, x, low, high)


def _clip(wire: Wiring, x: OutletId, low: OutletId | None, high: OutletId | None) -> OutletId:
    # The upper limit last: it wins where the limits cross.
    if low is not None:
        x = wire.binary(Max(), x, low)
    return x if high is None else wire.binary(Min(), x, high)
