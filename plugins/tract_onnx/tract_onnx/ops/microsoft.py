"""Operators that ONNX Runtime makes of several ones (domain ``com.microsoft``), and some that ONNX once had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, FactError
from tract_core.frontend.precision import rounded_once
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.activation import Activation, wire_activation
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import GeluApproximate, GeluExact
from tract_core.ops.norm import wire_layer_norm
from tract_core.ops.wired import Results, Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.conv import wire_conv
from tract_onnx.ops.einsum import wire_gemm
from tract_onnx.registry import DEFAULT_DOMAIN, MICROSOFT_DOMAIN, OLDEST, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


def _plus_bias(wire: Wiring) -> Wired:
    """The first input, plus the second one where it is there."""
    x, bias = wire.tensor(0), wire.optional_input(1)
    return x if bias is None else _plus(x, "bias", bias)


def _plus(x: Wired, role: str, other: OutletId) -> Wired:
    """The sum, which has the shape of ``x``."""
    x.wire.require_shape(role, other, x.shape, stretches=True)
    return x + x.with_outlet(other)


@onnx_op(ROWS, "BiasGelu", "Gelu", domain=MICROSOFT_DOMAIN)
@rounded_once()
def gelu(node: OnnxNode, wire: Wiring) -> Wired:
    """(x + bias)/2 * (1 + erf((x + bias)/sqrt(2)))"""
    return _plus_bias(wire).op(GeluExact())


@onnx_op(ROWS, "FastGelu", domain=MICROSOFT_DOMAIN)
@rounded_once()
def fast_gelu(node: OnnxNode, wire: Wiring) -> Wired:
    """The form of Gelu with tanh, of x plus a bias"""
    return _plus_bias(wire).op(GeluApproximate())


@onnx_op(ROWS, "QuickGelu", domain=MICROSOFT_DOMAIN)
@rounded_once()
def quick_gelu(node: OnnxNode, wire: Wiring) -> Wired:
    """X * sigmoid(alpha * x)"""
    x = wire.tensor(0)
    return x * (x * node.number("alpha", 1.702)).sigmoid()


@onnx_op(ROWS, "ScaledTanh")
def scaled_tanh(node: OnnxNode, wire: Wiring) -> Wired:
    """Alpha * tanh(beta * x)"""
    return (wire.tensor(0) * node.number("beta", 1.0)).tanh() * node.number("alpha", 1.0)


@onnx_op(ROWS, "ParametricSoftplus")
def parametric_softplus(node: OnnxNode, wire: Wiring) -> Wired:
    """Alpha * ln(exp(beta * x) + 1)"""
    inner = wire.tensor(0) * node.number("beta", 1.0)
    return _activated(inner, Activation("softplus")) * node.number("alpha", 1.0)


def _activated(x: Wired, activation: Activation) -> Wired:
    return x.with_outlet(x.wire.through(wire_activation, activation, x.outlet))


@onnx_op(ROWS, "ConstantLike")
def constant_like(node: OnnxNode, wire: Wiring) -> OutletId:
    """One value in the shape of x, or in a given one"""
    x = wire.optional_input(0)
    like = DatumType.F32 if x is None else wire.dtype(x).storage
    kind = node.element_type("dtype", like)
    shape = node.integers("shape") if x is None else wire.shape(x)
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise CorruptModel(f"attribute 'shape' is {list(shape)[:50]}, wanted sizes")
    value = np.array(node.number("value", 0.0)).astype(kind.numpy)
    return wire.broadcast(wire.const(Constant(value)), shape)


@onnx_op(ROWS, "SimplifiedLayerNormalization", domain=DEFAULT_DOMAIN)
@onnx_op(ROWS, "SimplifiedLayerNormalization", domain=MICROSOFT_DOMAIN)
@rounded_once(wide=(1,))
def simplified_layer_norm(node: OnnxNode, wire: Wiring) -> Sequence[Wired]:
    """X / sqrt(mean(x*x) + epsilon) * scale, the mean over all axes from ``axis`` on; and one over the root"""
    x = wire.tensor(0)
    return _root_mean_square(node, x, wire.tensor(1), node.axis("axis", x.rank, -1), epsilon=1e-5)


def _root_mean_square(node: OnnxNode, x: Wired, scale: Wired, axis: int, *, epsilon: float) -> tuple[Wired, Wired]:
    x.wire.require_shape("scale", scale.outlet, x.shape, stretches=True)
    inverse = (x.mean_of_squares(range(axis, x.rank)) + node.number("epsilon", epsilon)).rsqrt()
    return x * inverse * scale.cast(x.dtype), inverse


@onnx_op(ROWS, "SkipSimplifiedLayerNormalization", domain=MICROSOFT_DOMAIN)
@rounded_once(wide=(2,))
def skip_simplified_layer_norm(node: OnnxNode, wire: Wiring) -> Sequence[Wired | None]:
    """As SimplifiedLayerNormalization, of x plus a skipped x plus a bias; that sum is the last output"""
    total = _skip_sum(wire, wire.optional_input(3))
    result, inverse = _root_mean_square(node, total, wire.tensor(2), total.rank - 1, epsilon=1e-12)
    return result, None, inverse, total


@onnx_op(ROWS, "SkipLayerNormalization", domain=MICROSOFT_DOMAIN)
@rounded_once(wide=(1, 2))
def skip_layer_norm(node: OnnxNode, wire: Wiring) -> Sequence[Wired | None]:
    """X plus a skipped x plus a bias, standardised over the last axis, scaled and moved; that sum is the last output"""
    total = _skip_sum(wire, wire.optional_input(4))
    last, eps = total.rank - 1, node.number("epsilon", 1e-12)
    result = total.through(wire_layer_norm, last, eps=eps, scale=wire.input(2), bias=wire.optional_input(3))
    if not (node.wants_output(1) or node.wants_output(2)):
        return result, None, None, total
    mean = total.mean([last])
    return result, mean, ((total - mean).mean_of_squares([last]) + eps).rsqrt(), total


def _skip_sum(wire: Wiring, bias: OutletId | None) -> Wired:
    x, skipped = wire.tensor(0), wire.input(1)
    for role, slot in (("scale", 2), ("bias", 3), ("bias", 4)):
        parameter = wire.optional_input(slot)
        if parameter is not None:
            wire.require_shape(role, parameter, x.shape[-1:])
    total = _plus(x, "skipped tensor", skipped)
    return total if bias is None else _plus(total, "bias", bias)


@onnx_op(ROWS, "FusedMatMul", domain=MICROSOFT_DOMAIN)
@rounded_once()
def fused_matmul(node: OnnxNode, wire: Wiring) -> Wired:
    """Alpha times the product of two tensors, their last two axes swapped, and axis 0 put behind the batch, as asked"""
    a = _transposed(wire.tensor(0), matrix=node.flag("transA"), batch=node.flag("transBatchA"))
    b = _transposed(wire.tensor(1), matrix=node.flag("transB"), batch=node.flag("transBatchB"))
    result = a.through(wire_matmul, b.outlet).cast(a.dtype)
    alpha = node.number("alpha", 1.0)
    return result if alpha == 1 else result * alpha


def _transposed(x: Wired, *, matrix: bool, batch: bool) -> Wired:
    order = list(range(x.rank))
    if batch and len(order) > 2:
        order = [*order[1:-1], 0, order[-1]]
    if matrix and len(order) > 1:
        order[-2:] = [order[-1], order[-2]]
    return x.transpose(order)


_FUSED: Final = {"Relu": 0, "Tanh": 0, "Sigmoid": 0, "LeakyRelu": 1, "HardSigmoid": 2, "Clip": 2}
"""The activations that may follow a convolution, and how many parameters each takes."""


@onnx_op(ROWS, "FusedConv", domain=MICROSOFT_DOMAIN)
@rounded_once()
def fused_conv(node: OnnxNode, wire: Wiring) -> Wired:
    """A convolution, plus another tensor, and an activation of it"""
    result, other = Wired(wire, wire_conv(node, wire)), wire.optional_input(3)
    return _fused_activation(node, result if other is None else _plus(result, "summand", other))


def _fused_activation(node: OnnxNode, x: Wired) -> Wired:
    name = node.choice("activation", ("", *_FUSED), "")
    if not name:
        return x
    parameters = node.numbers("activation_params", ())
    if len(parameters) != _FUSED[name]:
        raise CorruptModel(f"{name} takes {_FUSED[name]} 'activation_params', found {len(parameters)}")
    if name == "Clip":
        low, high = parameters
        return x.maximum(low).minimum(high)
    return _activated(x, Activation(name.lower(), *parameters))


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
def distances(node: OnnxNode, wire: Wiring) -> Wired:
    """The distance of every row of the first matrix from every row of the second one"""
    metric = node.choice("metric", ("euclidean", "sqeuclidean"), "sqeuclidean")
    a, b = wire.tensor(0), wire.tensor(1)
    if a.rank != 2 or b.rank != 2 or not may_equal(a.shape[1], b.shape[1]):
        raise FactError(f"CDist wants rows of one length, found {a.fact} and {b.fact}")
    result = (a[:, None] - b[None]).square().sum([2])[..., 0]
    return result.sqrt() if metric == "euclidean" else result
