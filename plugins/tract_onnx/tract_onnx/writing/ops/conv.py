"""Convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.plugins.tables import Rows
from tract_onnx.writing.integers import bytes_of
from tract_onnx.writing.ops.spatial import as_it_was, attributes, channels_first
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Conv)
def conv(op: Conv, node: Spelling) -> str | None:
    """Conv, QLinearConv, or ConvInteger of bytes less their zero points"""
    told = attributes(node, op.pool, op)
    if told is None:
        return None
    rank, layout = node.fact().rank, op.pool.data_format
    x = channels_first(node, node.input(0), layout, rank)
    kernel = outputs_first(node, op.kernel_format, node.input(1))
    channels = node.result().shape[layout.c_axis(rank)]
    if op.q_output is not None:
        bias, x0, x_scale, k0, k_scale, y0, y_scale = node.inputs[2:]
        bias = bias if node.fact(2).rank else node.add("Expand", bias, node.sizes([channels]))
        inputs = [x, x_scale, x0, kernel, k_scale, k0, y_scale, y0, bias]
        made = node.add("QLinearConv", *inputs, group=op.group, **told)
    elif node.fact().datum_type.is_float():
        made = node.add("Conv", x, kernel, *bias_of(node, channels), group=op.group, **told)
    else:
        made = _centred(op, node, {**told, "group": op.group})
        if made is None:
            return None
    return as_it_was(node, made, layout, rank)


def outputs_first(node: Spelling, form: KernelFormat, kernel: str) -> str:
    """The kernel as outputs, inputs of a group, places."""
    rank = node.fact(1).rank
    places = [axis for axis in range(rank) if axis not in (form.o_axis(rank), form.i_axis(rank))]
    return node.transposed(kernel, [form.o_axis(rank), form.i_axis(rank), *places])


def bias_of(node: Spelling, channels: Dim) -> list[str]:
    """The bias, one number for each channel; none where it is 0."""
    fact = node.fact(2)
    known = fact.constant
    if known is not None and not np.asarray(known).astype(np.float64).any():
        return []
    return [node.input(2) if fact.rank == 1 else node.add("Expand", node.input(2), node.sizes([channels]))]


def _centred(op: Conv, node: Spelling, told: dict[str, Any]) -> str | None:
    """ConvInteger, of bytes less their zero points"""
    left, right = bytes_of(node, 0), bytes_of(node, 1)
    if left is None or right is None or left[2] != 1 or node.result().datum_type is not DatumType.I32:
        return None
    layout, form = op.pool.data_format, op.kernel_format
    if right[2] != 1 and form.o_axis(node.fact(1).rank) != 0:  # several zero points lie along the first axis
        return None
    left = channels_first(node, left[0], layout, node.fact(0).rank), *left[1:]
    right = outputs_first(node, form, right[0]), *right[1:]
    made = node.add("ConvInteger", left[0], right[0], left[1], right[1], **told)
    shape, bias = [1, -1, *[1] * (node.fact().rank - 2)], node.fact(2).constant
    if bias is not None and not bias.any():
        return made
    return node.add("Add", made, node.add("Reshape", node.input(2), node.ints(shape)))
