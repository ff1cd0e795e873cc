"""Operators that ONNX Runtime makes of several ones (domain ``com.microsoft``), and some that ONNX once had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, FactError
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.activation import Activation, wire_activation
from tract_core.ops.binary import Add, Max, Min, Mul, Sub
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import GeluApproximate, GeluExact, Rsqrt, Sigmoid, Sqrt, Square, Tanh
from tract_core.ops.norm import wire_layer_norm
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.wired import Results
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.conv import wire_conv
from tract_onnx.ops.einsum import wire_gemm
from tract_onnx.precision import rounded_once
from tract_onnx.registry import DEFAULT_DOMAIN, MICROSOFT_DOMAIN, OLDEST, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


def _plus_bias(wire: Wiring) -> OutletId:
    """The first input, plus the second one where it is there."""
    x, bias = wire.input(0), wire.optional(1)
    return x if bias is None else _plus(wire, x, "bias", bias)


def _plus(wire: Wiring, x: OutletId, role: str, other: OutletId) -> OutletId:
    """The sum, which has the shape of ``x``."""
    wire.require_shape(role, other, wire.shape(x), stretches=True)
    return wire.binary(Add(), x, other)


@onnx_op(ROWS, "BiasGelu", "Gelu", domain=MICROSOFT_DOMAIN)
@rounded_once()
def gelu(node: OnnxNode, wire: Wiring) -> OutletId:
    """(x + bias)/2 * (1 + erf((x + bias)/sqrt(2)))"""
    return wire.op(GeluExact(), _plus_bias(wire))


@onnx_op(ROWS, "FastGelu", domain=MICROSOFT_DOMAIN)
@rounded_once()
def fast_gelu(node: OnnxNode, wire: Wiring) -> OutletId:
    """The form of Gelu with tanh, of x plus a bias"""
    return wire.op(GeluApproximate(), _plus_bias(wire))


@onnx_op(ROWS, "QuickGelu", domain=MICROSOFT_DOMAIN)
@rounded_once()
def quick_gelu(node: OnnxNode, wire: Wiring) -> OutletId:
    """X * sigmoid(alpha * x)"""
    x = wire.input(0)
    scaled = wire.op(Mul(), x, wire.scalar(node.float("alpha", 1.702), x))
    return wire.op(Mul(), x, wire.op(Sigmoid(), scaled))


@onnx_op(ROWS, "ScaledTanh")
def scaled_tanh(node: OnnxNode, wire: Wiring) -> OutletId:
    """Alpha * tanh(beta * x)"""
    x = wire.input(0)
    inner = wire.op(Mul(), x, wire.scalar(node.float("beta", 1.0), x))
    return wire.op(Mul(), wire.op(Tanh(), inner), wire.scalar(node.float("alpha", 1.0), x))


@onnx_op(ROWS, "ParametricSoftplus")
def parametric_softplus(node: OnnxNode, wire: Wiring) -> OutletId:
    """Alpha * ln(exp(beta * x) + 1)"""
    x = wire.input(0)
    inner = wire.op(Mul(), x, wire.scalar(node.float("beta", 1.0), x))
    result = wire.through(wire_activation, Activation("softplus"), inner)
    return wire.op(Mul(), result, wire.scalar(node.float("alpha", 1.0), x))


@onnx_op(ROWS, "ConstantLike")
def constant_like(node: OnnxNode, wire: Wiring) -> OutletId:
    """One value in the shape of x, or in a given one"""
    x = wire.optional(0)
    like = DatumType.F32 if x is None else wire.dtype(x).storage
    kind = node.element_type("dtype", like)
    shape = node.ints("shape") if x is None else wire.shape(x)
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise CorruptModel(f"attribute 'shape' is {list(shape)[:50]}, wanted sizes")
    value = np.array(node.float("value", 0.0)).astype(kind.numpy)
    return wire.broadcast(wire.const(Constant(value)), shape)


@onnx_op(ROWS, "SimplifiedLayerNormalization", domain=DEFAULT_DOMAIN)
@onnx_op(ROWS, "SimplifiedLayerNormalization", domain=MICROSOFT_DOMAIN)
@rounded_once(wide=(1,))
def simplified_layer_norm(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """X / sqrt(mean(x*x) + epsilon) * scale, the mean over all axes from ``axis`` on; and one over the root"""
    x = wire.input(0)
    axis = wire.axis(node.int("axis", -1), wire.rank(x))
    return _root_mean_square(node, wire, x, wire.input(1), axis, epsilon=1e-5)


def _root_mean_square(
    node: OnnxNode, wire: Wiring, x: OutletId, scale: OutletId, axis: int, *, epsilon: float
) -> tuple[OutletId, OutletId]:
    wire.require_shape("scale", scale, wire.shape(x), stretches=True)
    mean = wire.op(Reduce(tuple(range(axis, wire.rank(x))), Reducer.MEAN_OF_SQUARES), x)
    inverse = wire.op(Rsqrt(), wire.op(Add(), mean, wire.scalar(node.float("epsilon", epsilon), mean)))
    return wire.binary(Mul(), wire.op(Mul(), x, inverse), wire.cast(scale, wire.dtype(x))), inverse


@onnx_op(ROWS, "SkipSimplifiedLayerNormalization", domain=MICROSOFT_DOMAIN)
@rounded_once(wide=(2,))
def skip_simplified_layer_norm(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
    """As SimplifiedLayerNormalization, of x plus a skipped x plus a bias; that sum is the last output"""
    total = _skip_sum(wire, wire.optional(3))
    result, inverse = _root_mean_square(node, wire, total, wire.input(2), wire.rank(total) - 1, epsilon=1e-12)
    return result, None, inverse, total


@onnx_op(ROWS, "SkipLayerNormalization", domain=MICROSOFT_DOMAIN)
@rounded_once(wide=(1, 2))
def skip_layer_norm(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
    """X plus a skipped x plus a bias, standardised over the last axis, scaled and moved; that sum is the last output"""
    total = _skip_sum(wire, wire.optional(4))
    last, eps = wire.rank(total) - 1, node.float("epsilon", 1e-12)
    result = wire.through(wire_layer_norm, total, last, eps=eps, scale=wire.input(2), bias=wire.optional(3))
    if not (node.wants_output(1) or node.wants_output(2)):
        return result, None, None, total
    mean = wire.through(wire_mean, total, (last,))
    variance = wire.op(Reduce((last,), Reducer.MEAN_OF_SQUARES), wire.op(Sub(), total, mean))
    inverse = wire.op(Rsqrt(), wire.op(Add(), variance, wire.scalar(eps, variance)))
    return result, mean, inverse, total


def _skip_sum(wire: Wiring, bias: OutletId | None) -> OutletId:
    x, skipped, last = wire.input(0), wire.input(1), wire.shape(wire.input(0))[-1:]
    for role, slot in (("scale", 2), ("bias", 3), ("bias", 4)):
        parameter = wire.optional(slot)
        if parameter is not None:
            wire.require_shape(role, parameter, last)
    total = _plus(wire, x, "skipped tensor", skipped)
    return total if bias is None else _plus(wire, total, "bias", bias)


@onnx_op(ROWS, "FusedMatMul", domain=MICROSOFT_DOMAIN)
@rounded_once()
def fused_matmul(node: OnnxNode, wire: Wiring) -> OutletId:
    """Alpha times the product of two tensors, their last two axes swapped, and axis 0 put behind the batch, as asked"""
    a = _transposed(wire, wire.input(0), matrix=node.flag("transA"), batch=node.flag("transBatchA"))
    b = _transposed(wire, wire.input(1), matrix=node.flag("transB"), batch=node.flag("transBatchB"))
    result = wire.cast(wire.through(wire_matmul, a, b), wire.dtype(a))
    alpha = node.float("alpha", 1.0)
    return result if alpha == 1 else wire.op(Mul(), result, wire.scalar(alpha, result))


def _transposed(wire: Wiring, x: OutletId, *, matrix: bool, batch: bool) -> OutletId:
    order = list(range(wire.rank(x)))
    if batch and len(order) > 2:
        order = [*order[1:-1], 0, order[-1]]
    if matrix and len(order) > 1:
        order[-2:] = [order[-1], order[-2]]
    return wire.transpose(x, order)


_FUSED: Final = {"Relu": 0, "Tanh": 0, "Sigmoid": 0, "LeakyRelu": 1, "HardSigmoid": 2, "Clip": 2}
"""The activations that may follow a convolution, and how many parameters each takes."""


@onnx_op(ROWS, "FusedConv", domain=MICROSOFT_DOMAIN)
@rounded_once()
def fused_conv(node: OnnxNode, wire: Wiring) -> OutletId:
    """A convolution, plus another tensor, and an activation of it"""
    result, other = wire_conv(node, wire), wire.optional(3)
    if other is not None:
        result = _plus(wire, result, "summand", other)
    return _fused_activation(node, wire, result)


def _fused_activation(node: OnnxNode, wire: Wiring, x: OutletId) -> OutletId:
    name = node.choice("activation", ("", *_FUSED), "")
    if not name:
        return x
    parameters = node.floats("activation_params", ())
    if len(parameters) != _FUSED[name]:
        raise CorruptModel(f"{name} takes {_FUSED[name]} 'activation_params', found {len(parameters)}")
    if name == "Clip":
        low, high = (wire.scalar(value, x) for value in parameters)
        return wire.op(Min(), wire.op(Max(), x, low), high)
    return wire.through(wire_activation, Activation(name.lower(), *parameters), x)


_AFTER_GEMM: Final = (
    *("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh"),
    "ThresholdedRelu",
)
"""The activations that may follow a product of matrices."""


@onnx_op(ROWS, "FusedGemm", domain=MICROSOFT_DOMAIN)
@rounded_once()
def fused_gemm(node: OnnxNode, wire: Wiring) -> Results:
    """Gemm, and an operator of the standard on its result, whose attributes have the prefix ``activation_`` here"""
    name, prefix = node.choice("activation", _AFTER_GEMM), "activation_"
    version = node.file.versions.get(DEFAULT_DOMAIN, OLDEST)
    function = node.file.ops.find(DEFAULT_DOMAIN, name, version)
    if function is None:
        raise CorruptModel(f"{name} follows a product, and version {version} of {DEFAULT_DOMAIN} does not have it")
    attributes = {key.removeprefix(prefix): value for key, value in node.attributes.items() if key.startswith(prefix)}
    inner = replace(node, op_type=name, domain=DEFAULT_DOMAIN, version=version, attributes=attributes)
    return function(inner, Wiring(wire.model, wire.name, [wire_gemm(node, wire)]))


@onnx_op(ROWS, "CDist", domain=MICROSOFT_DOMAIN)
def distances(node: OnnxNode, wire: Wiring) -> OutletId:
    """The distance of every row of the first matrix from every row of the second one"""
    metric = node.choice("metric", ("euclidean", "sqeuclidean"), "sqeuclidean")
    a, b = wire.input(0), wire.input(1)
    if wire.rank(a) != 2 or wire.rank(b) != 2 or not may_equal(wire.shape(a)[1], wire.shape(b)[1]):
        raise FactError(f"CDist wants rows of one length, found {wire.fact(a)} and {wire.fact(b)}")
    a, b = wire.unsqueeze(a, [1]), wire.unsqueeze(b, [0])
    squares = wire.op(Square(), wire.binary(Sub(), a, b))
    result = wire.squeeze(wire.op(Reduce((2,), Reducer.SUM), squares), [2])
    return wire.op(Sqrt(), result) if metric == "euclidean" else result
