"""Operators on quantised tensors that ONNX Runtime adds (domain ``com.microsoft``): what they say of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, FactError
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum, matmul_axes
from tract_core.ops.elementwise import LeakyRelu, Sigmoid
from tract_core.ops.pool import SumPool
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear, wire_dynamic_quantize
from tract_core.ops.recurrent_wiring import wire_lstm
from tract_core.ops.reduce import wire_mean
from tract_core.ops.softmax import Softmax
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops import quantize, recurrent
from tract_onnx.ops.spatial import pool_spec
from tract_onnx.registry import MICROSOFT_DOMAIN, ONNX, OnnxFn, onnx_op, row_key
from tract_onnx.wiring import Wiring

ROWS = Rows()

ROWS.add(ONNX, row_key("QuantizeLinear", 1, MICROSOFT_DOMAIN), quantize.quantize_linear)
ROWS.add(ONNX, row_key("DequantizeLinear", 1, MICROSOFT_DOMAIN), quantize.dequantize_linear)


def _real(wire: Wiring, slot: int) -> OutletId:
    """The real numbers (f32) of a quantised tensor: its integers, scale and zero point are inputs from ``slot`` on."""
    x, scale = wire.input(slot), wire.number(wire.input(slot + 1))
    zero = _zero(wire, slot + 2, wire.dtype(x).storage)
    return wire.op(DequantizeLinear(DatumType.F32), x, scale, zero)


def _zero(wire: Wiring, slot: int, kind: DatumType) -> OutletId:
    given = wire.optional_input(slot)
    return wire.const(np.zeros((), kind.numpy)) if given is None else wire.number(given)


def _quantized(wire: Wiring, x: OutletId, slot: int, kind: DatumType) -> OutletId:
    """``x`` by the scale and the zero point that are inputs from ``slot`` on."""
    return wire.op(QuantizeLinear(kind), x, wire.number(wire.input(slot)), _zero(wire, slot + 1, kind))


_BINARY: Final[dict[str, TypedOp]] = {"QLinearAdd": Add(), "QLinearMul": Mul()}


def _binary(op: TypedOp) -> OnnxFn:
    def wire_binary(node: OnnxNode, wire: Wiring) -> OutletId:
        kind = wire.dtype(wire.input(0)).storage
        return _quantized(wire, wire.binary(op, _real(wire, 0), _real(wire, 3)), 6, kind)

    return wire_binary


for _name, _op in _BINARY.items():
    ROWS.add(ONNX, row_key(_name, 1, MICROSOFT_DOMAIN), _binary(_op))


def _unary(node: OnnxNode, wire: Wiring, function: Callable[[OutletId], OutletId]) -> OutletId:
    kind = wire.dtype(wire.input(0)).storage
    return _quantized(wire, function(_real(wire, 0)), 3, kind)


@onnx_op(ROWS, "QLinearSigmoid", domain=MICROSOFT_DOMAIN)
def sigmoid(node: OnnxNode, wire: Wiring) -> OutletId:
    """1 / (1 + exp(-x))"""
    return _unary(node, wire, lambda x: wire.op(Sigmoid(), x))


@onnx_op(ROWS, "QLinearLeakyRelu", domain=MICROSOFT_DOMAIN)
def leaky_relu(node: OnnxNode, wire: Wiring) -> OutletId:
    """x, or alpha * x below zero"""
    return _unary(node, wire, lambda x: wire.op(LeakyRelu(node.number("alpha", 0.01)), x))


@onnx_op(ROWS, "QLinearSoftmax", domain=MICROSOFT_DOMAIN)
def softmax(node: OnnxNode, wire: Wiring) -> OutletId:
    """A softmax along one axis; before version 13 of the standard's, over it and all that follow"""
    rank = wire.rank(wire.input(0))
    axis = node.axis("axis", rank, -1)
    axes = (axis,) if node.integer("opset") >= 13 else tuple(range(axis, rank))
    return _unary(node, wire, lambda x: wire.op(Softmax(axes), x))


@onnx_op(ROWS, "QLinearGlobalAveragePool", domain=MICROSOFT_DOMAIN)
def global_average_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The mean over all places"""
    rank = wire.rank(wire.input(0))
    axes = tuple(range(1, rank - 1)) if node.flag("channels_last") else tuple(range(2, rank))
    return _unary(node, wire, lambda x: wire.through(wire_mean, x, axes))


@onnx_op(ROWS, "QLinearAveragePool", domain=MICROSOFT_DOMAIN)
def average_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The mean of each window"""
    pool = pool_spec(node, node.integers("kernel_shape"), ceil_mode=node.flag("ceil_mode"))
    op = SumPool(pool, node.flag("count_include_pad"))
    if not node.flag("channels_last"):
        return _unary(node, wire, lambda x: wire.op(op, x))
    rank = wire.rank(wire.input(0))
    back, forth = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    return _unary(node, wire, lambda x: wire.transpose(wire.op(op, wire.transpose(x, forth)), back))


@onnx_op(ROWS, "QLinearConcat", domain=MICROSOFT_DOMAIN)
def concat(node: OnnxNode, wire: Wiring) -> OutletId:
    """Tensors one after another: first the scale and zero point of the result, then three inputs for each"""
    count = len(wire.slots)
    if count < 5 or count % 3 != 2:
        raise CorruptModel(f"QLinearConcat has {count} inputs, wanted 2 and 3 for each tensor")
    parts = [_real(wire, slot) for slot in range(2, count, 3)]
    axis = node.axis("axis", wire.rank(parts[0]))
    return _quantized(wire, wire.op(TypedConcat(axis), *parts), 0, wire.dtype(wire.input(2)).storage)


def _product(wire: Wiring, a: OutletId, b: OutletId, a0: OutletId | None, b0: OutletId | None) -> OutletId:
    """The matrix product of integers less their zero points, in i32; those of B may be per column."""
    axes = matmul_axes(wire.rank(a), wire.rank(b))
    return wire.op(EinSum(axes, DatumType.I32), quantize.centred(wire, a, a0), quantize.centred(wire, b, b0))


def _scaled(wire: Wiring, product: OutletId, *scales: OutletId) -> OutletId:
    """Integers as real numbers (f32): times scales that are numbers, or lists along the last axis."""
    result = wire.cast(product, DatumType.F32)
    for scale in scales:
        factor = wire.number(scale) if wire.shape(scale).volume == 1 else scale
        wire.require_shape("scale", factor, wire.shape(result), stretches=True)
        result = wire.binary(Mul(), result, factor)
    return result


def _plus(wire: Wiring, x: OutletId, bias: OutletId | None) -> OutletId:
    if bias is None:
        return x
    wire.require_shape("bias", bias, wire.shape(x), stretches=True)
    return wire.binary(Add(), x, bias)


@onnx_op(ROWS, "MatMulIntegerToFloat", domain=MICROSOFT_DOMAIN)
def matmul_integer_to_float(node: OnnxNode, wire: Wiring) -> OutletId:
    """A product of quantised matrices as real numbers, plus a bias"""
    product = _product(wire, wire.input(0), wire.input(1), wire.optional_input(4), wire.optional_input(5))
    return _plus(wire, _scaled(wire, product, wire.input(2), wire.input(3)), wire.optional_input(6))


@onnx_op(ROWS, "DynamicQuantizeMatMul", domain=MICROSOFT_DOMAIN)
def dynamic_quantize_matmul(node: OnnxNode, wire: Wiring) -> OutletId:
    """A matrix of real numbers, quantised by its own range, times a quantised one, plus a bias"""
    a, a_scale, a0 = wire.through(wire_dynamic_quantize, wire.input(0))
    product = _product(wire, a, wire.input(1), a0, wire.optional_input(3))
    return _plus(wire, _scaled(wire, product, a_scale, wire.input(2)), wire.optional_input(4))


@onnx_op(ROWS, "QGemm", domain=MICROSOFT_DOMAIN)
def gemm(node: OnnxNode, wire: Wiring) -> OutletId:
    """Alpha * A B + C of quantised matrices, each transposed as asked; C has the scale of the product

    The result is quantised where there is a scale for it.
    """
    a, b, bias = wire.input(0), wire.input(3), wire.optional_input(6)
    if wire.rank(a) != 2 or wire.rank(b) != 2:
        raise FactError(f"QGemm wants matrices, found {wire.fact(a)} and {wire.fact(b)}")
    kind = wire.dtype(a).storage
    a = wire.transpose(a, [1, 0]) if node.flag("transA") else a
    b = wire.transpose(b, [1, 0]) if node.flag("transB") else b
    product = _plus(wire, _product(wire, a, b, wire.optional_input(2), wire.optional_input(5)), bias)
    alpha = wire.const(np.array(node.number("alpha", 1.0), np.float32))
    result = _scaled(wire, product, wire.input(1), wire.input(4), alpha)
    if wire.optional_input(7) is None:
        return result
    zero = wire.optional_input(8)
    return _quantized(wire, result, 7, kind if zero is None else wire.dtype(zero).storage)


@onnx_op(ROWS, "DynamicQuantizeLSTM", domain=MICROSOFT_DOMAIN)
def dynamic_quantize_lstm(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """LSTM whose weights are quantised; x, and h in every step, are quantised by their own range"""
    (w, w_scale), (r, r_scale) = (_recurrent_weights(wire, slot, parameters) for slot, parameters in ((1, 8), (2, 10)))
    inputs = replace(recurrent.inputs_of(node, wire), w=w, r=r)
    options = recurrent.options_of(node)
    forget = node.flag("input_forget")
    return wire.through(wire_lstm, options, inputs, input_forget=forget, scales=(w_scale, r_scale))


def _recurrent_weights(wire: Wiring, slot: int, parameters: int) -> tuple[OutletId, OutletId]:
    """Weights as LSTM has them, [directions, 4*hidden, size], less their zero points, and scales for the second axis.

    ``slot``: the input with the transposed weights. ``parameters``: the one that holds the scale of each direction, or
    of each of its columns; the zero points follow.
    """
    x, scale, zero = wire.input(slot), wire.input(parameters), wire.optional_input(parameters + 1)
    if wire.rank(x) != 3 or wire.rank(scale) not in (1, 2):
        raise FactError(f"DynamicQuantizeLSTM has weights {wire.fact(x)} with scales {wire.fact(scale)}")
    if zero is not None and wire.rank(zero) not in (1, 2):
        raise FactError(f"DynamicQuantizeLSTM has weights {wire.fact(x)} with zero points {wire.fact(zero)}")
    weights = wire.cast(x, DatumType.I32)
    if zero is not None:
        zero = wire.unsqueeze(zero, [1, 2] if wire.rank(zero) == 1 else [1])
        weights = wire.binary(Sub(), weights, wire.cast(zero, DatumType.I32))
    columns = wire.unsqueeze(scale, [1]) if wire.rank(scale) == 1 else scale
    return wire.transpose(weights, [0, 2, 1]), columns
