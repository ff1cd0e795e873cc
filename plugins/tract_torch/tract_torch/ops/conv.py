"""Convolutions and deconvolutions."""

from __future__ import annotations

import numpy as np

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.conv import Conv, KernelFormat, sum_type
from tract_core.ops.deconv import Deconv
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, SameUpper, Valid
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.conv1d", "aten.conv2d", "aten.conv3d", "aten._convolution_mode")
def conv(call: Call, wire: NodeWiring) -> OutletId:
    """Data (batch, channels, places), a kernel (outputs, channels of a group, places), and a bias"""
    return _convolution(call, wire, transposed=False)


@aten(ROWS, "aten.convolution", "aten._convolution", "aten.convolution_overrideable")
def convolution(call: Call, wire: NodeWiring) -> OutletId:
    """A convolution, or a transposed one"""
    return _convolution(call, wire, transposed=call.flag("transposed"))


@aten(ROWS, "aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def deconv(call: Call, wire: NodeWiring) -> OutletId:
    """A transposed convolution"""
    return _convolution(call, wire, transposed=True)


def _convolution(call: Call, wire: NodeWiring, *, transposed: bool) -> OutletId:
    x, kernel, bias = call.input("input"), call.input("weight"), call.optional_input("bias")
    if wire.rank(x) == wire.rank(kernel) - 1:  # one item without an axis of items
        return wire.squeeze(_wired(call, wire, (wire.unsqueeze(x, [0]), kernel, bias), transposed=transposed), [0])
    return _wired(call, wire, (x, kernel, bias), transposed=transposed)


def _wired(
    call: Call, wire: NodeWiring, inputs: tuple[OutletId, OutletId, OutletId | None], *, transposed: bool
) -> OutletId:
    x, kernel, bias = inputs
    summed = sum_type(wire.dtype(x).storage, wire.dtype(kernel).storage)
    bias = wire.const(np.zeros((), summed.numpy)) if bias is None else wire.cast(bias, summed)
    sizes = wire.shape(kernel)[2:]
    if not all(isinstance(size, int) for size in sizes):
        raise Unsupported(f"the kernel has sizes {sizes}, wanted numbers", hint="export with a kernel of fixed sizes")
    spatial = len(sizes)
    pool = PoolSpec(
        DataFormat.NCHW,
        tuple(int(size) for size in sizes),
        _padding(call, spatial),
        call.each("dilation", spatial),
        call.each("stride", spatial),
    )
    groups = call.integer("groups")
    if not transposed:
        return wire.cast(wire.op(Conv(pool, KernelFormat.OIHW, groups), x, kernel, bias), call.kind)
    adjustments = call.each("output_padding", spatial)
    deconv = Deconv(pool, KernelFormat.OIHW, adjustments, groups)
    return wire.cast(wire.op(deconv, x, _turned(wire, kernel, groups), bias), call.kind)


def _turned(wire: NodeWiring, kernel: OutletId, groups: int) -> OutletId:
    """The kernel (inputs, outputs of a group, places) as (outputs, inputs of a group, places)."""
    inputs, outputs, *places = wire.shape(kernel)
    split = wire.reshape(kernel, (groups, inputs // groups, outputs, *places))
    turned = wire.transpose(split, [0, 2, 1, *range(3, 3 + len(places))])
    return wire.reshape(turned, (outputs * groups, inputs // groups, *places))


def _padding(call: Call, spatial: int) -> Explicit | SameUpper | Valid:
    given = call.value("padding")
    if isinstance(given, str):
        return SameUpper() if given == "same" else Valid()
    pads = call.each("padding", spatial)
    return Explicit(pads, pads)
