"""Convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Sub
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.plugins.tables import Rows
from tract_onnx.writing.ops.spatial import as_it_was, attributes, channels_first
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()

BYTES = (DatumType.I8, DatumType.U8)


@ROWS.row(ONNX_WRITE, Conv)
def conv(op: Conv, node: Spelling) -> str | None:
    """Conv, QLinearConv, or ConvInteger of bytes less their zero points"""
    told = attributes(node, op.pool, op)
    if told is None:
        return None
    rank, layout = node.fact().rank, op.pool.data_format
    x = channels_first(node, node.input(0), layout, rank)
    kernel = outputs_first(node, op.kernel_format)
    channels = node.result().shape[layout.c_axis(rank)]
    if op.q_output is not None:
        bias, x0, x_scale, k0, k_scale, y0, y_scale = node.inputs[2:]
        bias = bias if node.fact(2).rank else node.add("Expand", bias, node.sizes([channels]))
        inputs = [x, x_scale, x0, kernel, k_scale, k0, y_scale, y0, bias]
        made = node.add("QLinearConv", *inputs, group=op.group, **told)
    elif node.fact().datum_type.is_float():
        made = node.add("Conv", x, kernel, *bias_of(node, channels), group=op.group, **told)
    else:
        made = _centred(node, x, kernel, {**told, "group": op.group})
        if made is None:
            return None
    return as_it_was(node, made, layout, rank)


def outputs_first(node: Spelling, form: KernelFormat) -> str:
    """The kernel as outputs, inputs of a group, places."""
    rank = node.fact(1).rank
    places = [axis for axis in range(rank) if axis not in (form.o_axis(rank), form.i_axis(rank))]
    return node.transposed(node.input(1), [form.o_axis(rank), form.i_axis(rank), *places])


def bias_of(node: Spelling, channels: Dim) -> list[str]:
    """The bias, one number for each channel; none where it is 0."""
    fact = node.fact(2)
    known = fact.constant
    if known is not None and not np.asarray(known).astype(np.float64).any():
        return []
    return [node.input(2) if fact.rank == 1 else node.add("Expand", node.input(2), node.sizes([channels]))]


def _centred(node: Spelling, x: str, kernel: str, told: dict[str, Any]) -> str | None:
    """ConvInteger, of bytes less their zero points"""
    left, right = _bytes(node, 0), _bytes(node, 1)
    if left is None or right is None or (x, kernel) != (node.input(0), node.input(1)) or left[2] != 1:
        return None
    made = node.add("ConvInteger", left[0], right[0], left[1], right[1], **told)
    shape = [1, -1, *[1] * (node.fact().rank - 2)]
    return node.add("Add", made, node.add("Reshape", node.input(2), node.ints(shape)))


def _bytes(node: Spelling, slot: int) -> tuple[str, str, int] | None:
    """The bytes, their zero point, and how many of these there are, of what is converted and moved."""
    model, moved = node.model, node.node.inputs[slot]
    maker, known = model.nodes[moved.node], model.outlet_fact(moved).constant
    plain = _converted(model, moved)
    if plain is None and known is not None:
        return _constant_bytes(node, known)
    if plain is not None:
        return node.name_of(plain), node.constant(0, model.outlet_fact(plain).datum_type), 1
    values = _converted(model, maker.inputs[0]) if isinstance(maker.op, Sub) else None
    if values is None:
        return None
    shape, zeros = model.outlet_fact(maker.inputs[1]).shape, _before(model, maker.inputs[1])
    count, kind = shape.volume, model.outlet_fact(values).datum_type
    if model.outlet_fact(zeros).datum_type is not kind or not isinstance(count, int) or count not in (1, shape[0]):
        return None
    return node.name_of(values), node.reshaped(node.name_of(zeros), [count] if count != 1 else []), count


def _constant_bytes(node: Spelling, value: np.ndarray) -> tuple[str, str, int] | None:
    """Integers as bytes and a zero point, where they do not lie too far apart."""
    low, high = int(value.min(initial=0)), int(value.max(initial=0))
    if low >= -128 and high <= 127:
        return node.constant(value.astype(np.int8)), node.constant(0, DatumType.I8), 1
    if high - low > 255:
        return None
    return node.constant((value - low).astype(np.uint8)), node.constant(-low, DatumType.U8), 1


def _converted(model: TypedModel, outlet: OutletId) -> OutletId | None:
    """The bytes that a tensor is, or that become it."""
    if model.outlet_fact(outlet).datum_type in BYTES:
        return outlet
    maker = model.nodes[outlet.node]
    before = maker.inputs[0] if isinstance(maker.op, Cast) else None
    return before if before is not None and model.outlet_fact(before).datum_type in BYTES else None


def _before(model: TypedModel, outlet: OutletId) -> OutletId:
    """What was there before it was converted, and got axes of size 1."""
    while isinstance((maker := model.nodes[outlet.node]).op, (Cast, AddAxis)):
        outlet = maker.inputs[0]
    return outlet
