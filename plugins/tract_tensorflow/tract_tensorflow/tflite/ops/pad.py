"""Tensors made larger at their ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.pad import PadConstant, PadReflect
from tract_core.ops.slice import wire_slice
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_dyn_pad, wire_pad
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "PAD")
@tflite_op(ROWS, "PAD")
def pad(node: TfliteNode, wire: Wiring) -> Wired:
    """With zeros around"""
    return _padded(wire, _zero(wire, wire.input(0)), None)


@quantized_op(ROWS, "PADV2")
@tflite_op(ROWS, "PADV2")
def pad_v2(node: TfliteNode, wire: Wiring) -> Wired:
    """With the element of an input around"""
    value = wire.number(wire.input(2))
    return _padded(wire, _zero(wire, wire.input(0)), value)


def _padded(wire: Wiring, zero: PadConstant, value: OutletId | None) -> Wired:
    """The pads are an input of pairs, one for each axis: before and after it."""
    x, pads = wire.tensor(0), wire.tensor(1)
    if pads.rank != 2:
        raise CorruptModel(f"pads are given as {pads.fact}, wanted a pair for each axis")
    flat = wire.sizes(pads.transpose((1, 0)).reshape((pads.shape.volume,)).outlet)
    return x.through(wire_dyn_pad, flat, zero, value=value)


def filled(wire: Wiring, x: OutletId, pads: Sequence[tuple[Dim, Dim]]) -> Wired:
    """The first input of an operator with zeros around."""
    return Wired(wire, wire.through(wire_pad, x, pads, _zero(wire, x)))


def _zero(wire: Wiring, x: OutletId) -> PadConstant:
    """What stands for zero: that of the output, where its integers stand for numbers."""
    output = wire.node.output()
    zero = output.quantization.zero if output.quantization is not None and output.is_quantized else 0
    return PadConstant(Constant(np.array(zero).astype(wire.dtype(x).numpy)))


def pairs_of(wire: Wiring, pads: OutletId) -> list[tuple[Dim, Dim]]:
    """Pairs of numbers, or of sizes. Raises Unsupported when they are computed, CorruptModel when they are none."""
    found = wire.dims(pads)
    if found is None:
        raise Unsupported(f"what is added at the ends must be known when the model is loaded, found {wire.fact(pads)}")
    if wire.rank(pads) != 2 or len(found) % 2:
        raise CorruptModel(f"what is added at the ends is {wire.fact(pads)}, wanted a pair for each axis")
    return list(zip(found[::2], found[1::2], strict=True))


@quantized_op(ROWS, "MIRROR_PAD")
@tflite_op(ROWS, "MIRROR_PAD")
def mirror_pad(node: TfliteNode, wire: Wiring) -> Wired:
    """With mirror images around, without the elements at the ends (REFLECT), or with them (SYMMETRIC)"""
    x, pads = wire.tensor(0), pairs_of(wire, wire.input(1))
    if len(pads) != x.rank:
        raise CorruptModel(f"{len(pads)} pairs of pads are given for {x.fact}")
    if node.choice("mode", ("REFLECT", "SYMMETRIC"), "REFLECT") == "REFLECT":
        return x.through(wire_pad, pads, PadReflect())
    for axis, (before, after) in enumerate(pads):
        parts = [x]
        if before != 0:
            parts.insert(0, _backwards(x.part(axis, 0, before), axis))
        if after != 0:
            parts.append(_backwards(x.part(axis, x.shape[axis] - after, x.shape[axis]), axis))
        x = parts[0].concat(parts[1:], axis) if len(parts) > 1 else x
    return x


def _backwards(x: Wired, axis: int) -> Wired:
    return x.through(wire_slice, axis, start=None, end=None, step=-1)
