"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant
from tract_core.dims import is_one, product
from tract_core.ops.fft import Fft, Stft
from tract_core.ops.pad import Pad, PadConstant
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Fft)
def fft(op: Fft, node: Spelling) -> str:
    """DFT, whose inverse divides by the number of elements, which is multiplied again"""
    x, axis = _signal(node), op.axis
    kind, rank = node.fact().datum_type, node.fact().rank
    if rank == 2:
        x, axis = node.with_axes(x, [0]), 1
    if node.opset >= 20:
        made = node.add("DFT", x, "", node.constant(np.array(axis)), inverse=int(op.inverse))
    else:
        made = node.add("DFT", x, axis=axis, inverse=int(op.inverse))
    if op.inverse:
        made = node.add("Mul", made, node.cast(node.sizes([node.fact().shape[op.axis]]), kind))
    return node.without_axes(made, [0]) if rank == 2 else made


@ROWS.row(ONNX_WRITE, Stft)
def stft(op: Stft, node: Spelling) -> str:
    """STFT, of a batch of signals; axes behind the signal's become part of the batch"""
    x, shape = _signal(node), node.fact().shape
    rank = len(shape)
    behind, lead = list(range(op.axis + 1, rank - 1)), list(range(op.axis))
    pair = 1 if x != node.input() else 2
    order = [*lead, *behind, op.axis, rank - 1]
    batch = [shape[axis] for axis in [*lead, *behind]]
    flat = node.transposed(x, order)
    if len(batch) != 1:
        flat = node.reshaped(flat, [product(batch), shape[op.axis], pair])
    kind = node.fact().datum_type.storage.numpy
    window = node.held(Constant(_window(op).astype(kind)))
    step, length = (node.constant(np.array(number)) for number in (op.stride, op.frame))
    made = node.add("STFT", flat, step, window, length, onesided=0)
    result = node.result().shape
    if len(batch) != 1:
        made = node.reshaped(made, [*batch, *result[op.axis : op.axis + 2], 2])
    back = [order.index(axis) for axis in lead] + [len(batch), len(batch) + 1]
    return node.transposed(made, [*back, *(order.index(axis) for axis in behind), rank])


def _window(op: Stft) -> np.ndarray:
    """Of a whole frame: in its middle, where it is shorter."""
    if op.window is None:
        return np.ones(op.frame)
    before = (op.frame - op.window.array.size) // 2
    return np.pad(op.window.array, (before, op.frame - op.window.array.size - before))


def _signal(node: Spelling) -> str:
    """Pairs of real and imaginary parts; where zeros were put behind real parts, these alone."""
    outlet = node.node.inputs[0]
    maker = node.model.nodes[outlet.node]
    if not isinstance(maker.op, Pad) or not _is_zero(maker.op):
        return node.input()
    *others, last = maker.op.pads
    before = node.model.outlet_fact(maker.inputs[0])
    is_real = tuple(last) == (0, 1) and _are_zeros(others) and is_one(before.shape[-1])
    return node.name_of(maker.inputs[0]) if is_real else node.input()


def _is_zero(op: Pad) -> bool:
    return isinstance(op.mode, PadConstant) and not op.mode.value.array.any()


def _are_zeros(pads: Sequence[Sequence[object]]) -> bool:
    return all(tuple(pad) == (0, 0) for pad in pads)
