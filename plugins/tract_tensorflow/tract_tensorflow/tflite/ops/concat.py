"""Tensors put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.quantize import LookupTable
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.quantization import Quantization
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "CONCATENATION")
def concatenation(node: TfliteNode, wire: Wiring) -> Wired:
    """The inputs, one after the other along an axis"""
    return activated(_concatenated(node, wire, wire.all_inputs()), node)


@quantized_op(ROWS, "CONCATENATION")
def quantized_concatenation(node: TfliteNode, wire: Wiring) -> Wired:
    """Those that are counted in other steps than the result are counted anew, as u8"""
    inputs = [_in_steps_of_output(node, wire, slot) for slot in range(len(wire.all_inputs()))]
    return _concatenated(node, wire, inputs)


def _concatenated(node: TfliteNode, wire: Wiring, inputs: Sequence[OutletId]) -> Wired:
    axis = node.axis("axis", wire.rank(inputs[0]), 0)
    return Wired(wire, inputs[0] if len(inputs) == 1 else wire.op(TypedConcat(axis), *inputs))


def _in_steps_of_output(node: TfliteNode, wire: Wiring, slot: int) -> OutletId:
    x, given, wanted = wire.tensor(slot), node.quantization(slot), node.output_quantization()
    if (given.scale, given.zero) == (wanted.scale, wanted.zero):
        return x.outlet
    if x.dtype.numpy != np.uint8:
        found = f"input {slot} of CONCATENATION has the scale {given.scale:g} and the zero point {given.zero}"
        raise Unsupported(
            f"{found}, the output {wanted.scale:g} and {wanted.zero}; TFLite takes others for u8 only, found {x.fact}"
        )
    return x.op(LookupTable(Constant(_counted_anew(given, wanted)))).outlet


def _counted_anew(given: Quantization, wanted: Quantization) -> Array:
    """Each byte in other steps: in f32, halves away from zero, within 0 to 255."""
    scale = np.float32(given.scale) * (np.float32(1) / np.float32(wanted.scale))
    offset = np.float32(-given.zero) * scale
    steps = (np.arange(256, dtype=np.float32) * scale + offset).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps) + wanted.zero
    return np.clip(rounded, 0, 255).astype(np.uint8)


@quantized_op(ROWS, "PACK")
@tflite_op(ROWS, "PACK")
def pack(node: TfliteNode, wire: Wiring) -> OutletId:
    """The inputs, one after the other along a new axis"""
    inputs = wire.all_inputs()
    axis = node.axis("axis", wire.rank(inputs[0]) + 1, 0)
    longer = [wire.unsqueeze(x, [axis]) for x in inputs]
    return longer[0] if len(longer) == 1 else wire.op(TypedConcat(axis), *longer)
