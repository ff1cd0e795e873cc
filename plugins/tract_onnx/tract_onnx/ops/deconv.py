"""Deconvolutions, which ONNX calls transposed convolutions."""

from __future__ import annotations

import numpy as np

from tract_core.dims import Dim, dim_max, exact_div
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.conv import KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import DataFormat, Explicit, Padding, PoolSpec
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.spatial import AUTO_PADS, kernel_shape, padding
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "ConvTranspose")
def deconv(node: OnnxNode, wire: Wiring) -> OutletId:
    """Data (batch, channels, places), a kernel (channels, outputs of a group, places), and a bias"""
    x, kernel, bias = wire.input(0), wire.input(1), wire.optional_input(2)
    kernel_sizes = kernel_shape(node, wire, kernel)
    if wire.rank(x) != wire.rank(kernel):
        raise FactError(f"a kernel of as many axes as the data is wanted, found {wire.fact(kernel)} for {wire.fact(x)}")
    rank, group = len(kernel_sizes), node.integer("group", 1)
    extra = node.each("output_padding", rank, 0)
    strides, dilations = node.each("strides", rank, 1), node.each("dilations", rank, 1)
    pads = padding(node, rank)
    if node.has("output_shape"):
        fields = [(size - 1) * dilation + 1 for size, dilation in zip(kernel_sizes, dilations, strict=True)]
        written = [
            (size - 1) * stride + field + more
            for size, stride, field, more in zip(wire.shape(x)[2:], strides, fields, extra, strict=True)
        ]
        pads = _pads_for(node, written)
    pool = PoolSpec(DataFormat.NCHW, kernel_sizes, pads, dilations=dilations, strides=strides)
    if bias is None:
        bias = wire.const(np.zeros((), wire.dtype(x).numpy))
    return wire.op(Deconv(pool, KernelFormat.OIHW, extra, group), x, _outputs_first(wire, kernel, group), bias)


def _pads_for(node: OnnxNode, written: list[Dim]) -> Padding:
    """What is cut off from what is written, so that the attribute ``output_shape`` is left."""
    wanted = node.integers("output_shape")[-len(written) :]
    if len(wanted) != len(written):
        raise node.misfit("output_shape", f"is {list(wanted)}", f"{len(written)} sizes")
    upper = node.choice("auto_pad", AUTO_PADS, "NOTSET") == "SAME_UPPER"
    cuts = [_cut(size - target, upper=upper) for size, target in zip(written, wanted, strict=True)]
    return Explicit(tuple(before for before, _ in cuts), tuple(after for _, after in cuts))


def _cut(total: Dim, *, upper: bool) -> tuple[Dim, Dim]:
    """What is cut off at both ends; where more is wanted than is written, zeros follow behind it."""
    before = dim_max(0, total // 2 if upper else total - total // 2)
    return before, total - before


def _outputs_first(wire: Wiring, kernel: OutletId, group: int) -> OutletId:
    """The kernel as (outputs of all groups, channels of one group, places)."""
    channels, outputs, *spatial = wire.shape(kernel)
    if group == 1:
        return wire.transpose(kernel, (1, 0, *range(2, len(spatial) + 2)))
    per_group = exact_div(channels, group) if group > 0 else None
    if per_group is None:
        raise FactError(f"{channels} channels cannot be cut into {group} groups")
    split = wire.reshape(kernel, (group, per_group, outputs, *spatial))
    swapped = wire.transpose(split, (0, 2, 1, *range(3, len(spatial) + 3)))
    return wire.reshape(swapped, (group * outputs, per_group, *spatial))
