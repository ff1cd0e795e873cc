"""Operators on quantised tensors that ONNX Runtime adds (domain ``com.microsoft``): what they say of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops.binary import Add, Mul
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import LeakyRelu, Sigmoid
from tract_core.ops.pool import SumPool
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.reduce import wire_mean
from tract_core.ops.softmax import Softmax
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops import quantize
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
    given = wire.optional(slot)
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
    return _unary(node, wire, lambda x: wire.op(LeakyRelu(node.float("alpha", 0.01)), x))


@onnx_op(ROWS, "QLinearSoftmax", domain=MICROSOFT_DOMAIN)
def softmax(node: OnnxNode, wire: Wiring) -> OutletId:
    """A softmax along one axis; before version 13 of the standard's, over it and all that follow"""
    rank = wire.rank(wire.input(0))
    axis = wire.axis(node.int("axis", -1), rank)
    axes = (axis,) if node.int("opset") >= 13 else tuple(range(axis, rank))
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
    pool = pool_spec(node, node.ints("kernel_shape"), ceil_mode=node.flag("ceil_mode"))
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
    axis = wire.axis(node.int("axis"), wire.rank(parts[0]))
    return _quantized(wire, wire.op(TypedConcat(axis), *parts), 0, wire.dtype(wire.input(2)).storage)
