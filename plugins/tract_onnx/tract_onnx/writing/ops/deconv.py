"""Deconvolutions, which ONNX calls transposed convolutions."""

from __future__ import annotations

from tract_core.ops.deconv import Deconv
from tract_core.plugins.tables import Rows
from tract_onnx.writing.ops.conv import bias_of, outputs_first
from tract_onnx.writing.ops.spatial import as_it_was, channels_first
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Deconv)
def deconv(op: Deconv, node: Spelling) -> str | None:
    """ConvTranspose, whose kernel has the input channels in front"""
    rank, layout, pool = node.fact().rank, op.pool.data_format, op.pool
    plans = pool.transposed_plan(op, node.fact().shape, op.adjustments or (0,) * pool.rank)
    pads = [*(plan.before for plan in plans), *(plan.after for plan in plans)]
    if not node.fact().datum_type.is_float() or not all(isinstance(pad, int) and pad >= 0 for pad in pads):
        return None
    x = channels_first(node, node.input(0), layout, rank)
    outputs = node.result().shape[layout.c_axis(rank)]
    inputs = node.fact().shape[layout.c_axis(rank)]
    kernel = outputs_first(node, op.kernel_format)
    places = list(range(2, pool.rank + 2))
    if op.group == 1:
        kernel = node.transposed(kernel, [1, 0, *places])
    else:
        if not isinstance(outputs, int) or not isinstance(inputs, int):
            return None
        split = node.reshaped(kernel, [op.group, outputs // op.group, inputs // op.group, *pool.kernel_shape])
        swapped = node.transposed(split, [0, 2, 1, *(place + 1 for place in places)])
        kernel = node.reshaped(swapped, [inputs, outputs // op.group, *pool.kernel_shape])
    made = node.add(
        "ConvTranspose",
        x,
        kernel,
        *bias_of(node, outputs),
        kernel_shape=list(pool.kernel_shape),
        strides=list(pool.strides),
        dilations=list(pool.dilations),
        output_padding=list(op.adjustments or (0,) * pool.rank),
        pads=pads,
        group=op.group,
    )
    return as_it_was(node, made, layout, rank)
