"""Real numbers as small integers and back, and products of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import FactError, Unsupported
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Sub
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.einsum import EinSum, matmul_axes, wire_matmul
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear, wire_dynamic_quantize
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.spatial import kernel_shape, pool_spec
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

_BYTES: Final = (DatumType.U8, DatumType.I8)


@onnx_op(ROWS, "QuantizeLinear", since=10)
def quantize_linear(node: OnnxNode, wire: Wiring) -> OutletId:
    """round(x / scale) + zero_point, saturated; one scale for all, per position of an axis, or per block of it"""
    x, scale, zero = wire.input(0), wire.input(1), wire.optional_input(2)
    if wire.dtype(scale).is_integer():
        scale = wire.cast(scale, DatumType.F32)
    if zero is None:
        kind = node.element_type("output_dtype", DatumType.U8) if node.integer("output_dtype", 0) else DatumType.U8
        zero = _zeros(wire, scale, kind)
    axis, scale, zero = _parameters(node, wire, x, scale, zero)
    to = wire.dtype(zero).storage
    return wire.op(QuantizeLinear(to, axis, node.integer("block_size", 0), node.flag("saturate", True)), x, scale, zero)


@onnx_op(ROWS, "DequantizeLinear", since=10)
def dequantize_linear(node: OnnxNode, wire: Wiring) -> OutletId:
    """(x - zero_point) * scale"""
    x, scale, zero = wire.input(0), wire.input(1), wire.optional_input(2)
    if zero is None:
        zero = _zeros(wire, scale, wire.dtype(x).storage)
    to = wire.dtype(scale).storage
    if node.integer("output_dtype", 0):
        to = node.element_type("output_dtype")
    axis, scale, zero = _parameters(node, wire, x, scale, zero)
    return wire.op(DequantizeLinear(to, axis, node.integer("block_size", 0)), x, scale, zero)


def _zeros(wire: Wiring, scale: OutletId, kind: DatumType) -> OutletId:
    return wire.broadcast(wire.const(np.zeros((), kind.numpy)), wire.shape(scale))


def _parameters(
    node: OnnxNode, wire: Wiring, x: OutletId, scale: OutletId, zero: OutletId
) -> tuple[int, OutletId, OutletId]:
    """The axis along which the parameters vary, and the parameters, with no axes where they hold one element."""
    block = node.integer("block_size", 0)
    if block < 0:
        raise FactError(f"attribute 'block_size' is {block}")
    if not block and wire.shape(scale).volume == 1:
        return 0, wire.number(scale), wire.number(zero)
    return node.axis("axis", wire.rank(x), 1), scale, zero


@onnx_op(ROWS, "DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """The input as u8, with a scale and a zero point that fit its range"""
    return wire.through(wire_dynamic_quantize, wire.input(0))


@onnx_op(ROWS, "MatMulInteger", since=10)
def matmul_integer(node: OnnxNode, wire: Wiring) -> OutletId:
    """The product of integers less their zero points, in i32; zero points are per row of A and per column of B"""
    a, b, a0, b0 = wire.input(0), wire.input(1), wire.optional_input(2), wire.optional_input(3)
    if a0 is not None and wire.rank(a0) == 1 and wire.rank(a) > 1:
        a0 = wire.unsqueeze(a0, [1])
    a, b = centred(wire, a, a0), centred(wire, b, b0)
    return wire.through(wire_matmul, a, b)


@onnx_op(ROWS, "ConvInteger", since=10)
def conv_integer(node: OnnxNode, wire: Wiring) -> OutletId:
    """The convolution of integers less their zero points, in i32; those of the kernel are per output channel"""
    kernel, w0 = wire.input(1), wire.optional_input(3)
    pool = pool_spec(node, kernel_shape(node, wire, kernel))
    if w0 is not None and wire.rank(w0) == 1 and wire.shape(w0).volume != 1:
        w0 = wire.unsqueeze(w0, list(range(1, wire.rank(kernel))))
    x, kernel = centred(wire, wire.input(0), wire.optional_input(2)), centred(wire, kernel, w0)
    bias = wire.const(np.zeros((), np.int32))
    return wire.op(Conv(pool, KernelFormat.OIHW, node.integer("group", 1)), x, kernel, bias)


def centred(wire: Wiring, x: OutletId, zero: OutletId | None) -> OutletId:
    """An integer tensor less its zero point: in i32, or in a narrower type where that surely holds it."""
    is_bytes = wire.dtype(x) in _BYTES
    if zero is None:
        return x if is_bytes else wire.cast(x, DatumType.I32)
    if wire.shape(zero).volume == 1:
        zero = wire.number(zero)
    wire.require_shape("zero point", zero, wire.shape(x), stretches=True)
    integers, point = wire.constant(x), wire.constant(zero)
    if is_bytes and point is not None and not point.any():
        return x
    if is_bytes and integers is not None and point is not None and point.dtype.itemsize == 1:
        return wire.const(_narrow(np.subtract(integers, point, dtype=np.int16)))
    return wire.binary(Sub(), wire.cast(x, DatumType.I32), wire.cast(zero, DatumType.I32))


def _narrow(integers: Array) -> Array:
    """Differences of bytes, in bytes where they fit: weights are to take no more than in the file."""
    fits = not integers.size or (integers.min() >= -128 and integers.max() <= 127)
    return integers.astype(np.int8) if fits else integers


@onnx_op(ROWS, "QLinearConv", since=10)
def qlinear_conv(node: OnnxNode, wire: Wiring) -> OutletId:
    """A convolution of quantised tensors; parameters of the kernel may be per output channel"""
    x, x_scale, x0, kernel, w_scale, w0, y_scale, y0 = (wire.input(slot) for slot in range(8))
    bias = wire.optional_input(8)
    pool = pool_spec(node, kernel_shape(node, wire, kernel))
    if bias is None:
        bias = wire.const(np.zeros((), np.int32))
    op = Conv(pool, KernelFormat.OIHW, node.integer("group", 1), wire.dtype(y0))
    parameters = [_scalar_or_list(wire, one) for one in (x0, x_scale, w0, w_scale, y0, y_scale)]
    return wire.op(op, x, kernel, bias, *parameters)


def _scalar_or_list(wire: Wiring, parameter: OutletId) -> OutletId:
    return wire.number(parameter) if wire.shape(parameter).volume == 1 else parameter


@onnx_op(ROWS, "QLinearMatMul", since=10)
def qlinear_matmul(node: OnnxNode, wire: Wiring) -> OutletId:
    """A product of quantised matrices; parameters may be per row of A, per column of B, and per row of the result"""
    a, a_scale, a0, b, b_scale, b0, y_scale, y0 = (wire.input(slot) for slot in range(8))
    axes = matmul_axes(wire.rank(a), wire.rank(b))
    row = axes.inputs[0][-2] if wire.rank(a) > 1 else None
    column = axes.inputs[1][-1] if wire.rank(b) > 1 else None
    bias = wire.const(np.zeros((), np.int32))
    varying = [(a0, row), (a_scale, row), (b0, column), (b_scale, column), (y0, row), (y_scale, row)]
    sizes = {row: wire.shape(a)[-2:][0], column: wire.shape(b)[-1]}
    for parameter, axis in varying:
        if wire.rank(parameter) == 1 and axis is not None:
            wire.require_shape("quantisation parameter", parameter, (sizes[axis],), stretches=True)
    inner = wire.shape(a)[-1], wire.shape(b)[-2:][0]
    if not may_equal(*inner):
        raise FactError(f"a matrix product wants inner sizes that are equal, found {wire.fact(a)} and {wire.fact(b)}")
    parameters = [_along(wire, parameter, axis) for parameter, axis in varying]
    mapping = AxesMapping((*axes.inputs, "", *(term for _, term in parameters)), axes.outputs)
    op = EinSum(mapping, DatumType.I32, wire.dtype(y0))
    return wire.op(op, a, b, bias, *(parameter for parameter, _ in parameters))


def _along(wire: Wiring, parameter: OutletId, axis: str | None) -> tuple[OutletId, str]:
    """A parameter, and the axis that it varies along."""
    if wire.shape(parameter).volume == 1:
        return wire.number(parameter), ""
    if wire.rank(parameter) != 1 or axis is None:
        raise Unsupported(f"a quantisation parameter of QLinearMatMul is {wire.fact(parameter)}, wanted one axis")
    return parameter, axis
