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
    numbers = [pad for pad in pads if isinstance(pad, int)]
    if not node.fact().datum_type.is_float() or len(numbers) < len(pads):
        return None
    x = channels_first(node, node.input(0), layout, rank)
    outputs = node.result().shape[layout.c_axis(rank)]
    inputs = node.fact().shape[layout.c_axis(rank)]
    kernel = outputs_first(node, op.kernel_format, node.input(1))
    places = list(range(2, pool.rank + 2))
    if op.group == 1:
        kernel = node.transposed(kernel, [1, 0, *places])
    else:
        if not isinstance(outputs, int) or not isinstance(inputs, int):
            return None
        split = node.reshaped(kernel, [op.group, outputs // op.group, inputs // op.group, *pool.kernel_shape])
        swapped = node.transposed(split, [0, 2, 1, *(place + 1 for place in places)])
        kernel = node.reshaped(swapped, [inputs, outputs // op.group, *pool.kernel_shape])
    bias, grows = bias_of(node, outputs), min(numbers, default=0) < 0
    made = node.add(
        "ConvTranspose",
        x,
        kernel,
        *([] if grows else bias),
        kernel_shape=list(pool.kernel_shape),
        strides=list(pool.strides),
        dilations=list(pool.dilations),
        output_padding=list(op.adjustments or (0,) * pool.rank),
        pads=[max(pad, 0) for pad in numbers],
        group=op.group,
    )
    if grows:
        made = _grown(node, made, numbers, bias)
    return as_it_was(node, made, layout, rank)


def _grown(node: Spelling, made: str, pads: list[int], bias: list[str]) -> str:
    """With zeros where the padding is less than none, and the bias everywhere"""
    count = len(pads) // 2
    more = [max(-pad, 0) for pad in pads]
    made = node.add("Pad", made, node.ints([0, 0, *more[:count], 0, 0, *more[count:]]))
    if not bias:
        return made
    return node.add("Add", made, node.reshaped(bias[0], [-1, *[1] * count]))
