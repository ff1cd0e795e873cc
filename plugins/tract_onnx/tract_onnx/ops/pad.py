"""Tensors made larger at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.expect import element
from tract_core.ops.pad import PadConstant, PadEdge, PadMode, PadReflect, PadWrap
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_dyn_pad, wire_move_axes, wire_pad
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring, zero_of

ROWS = Rows()

_MODES: Final = {"reflect": PadReflect(), "edge": PadEdge(), "wrap": PadWrap()}


@onnx_op(ROWS, "Pad")
def pad_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """Pads and value are attributes"""
    x, pads = wire.input(0), node.integers("paddings" if node.version < 2 else "pads")
    rank, value = wire.rank(x), Constant(element(node.number("value", 0.0), wire.dtype(x)))
    return wire.through(wire_pad, x, _pairs(pads, range(rank), rank), _mode(node, value))


@onnx_op(ROWS, "Pad", since=11)
def pad_11(node: OnnxNode, wire: Wiring) -> OutletId:
    """Pads, value, and the axes that the pads are for, are inputs"""
    x, pads = wire.input(0), wire.sizes(wire.input(1))
    mode, value = _mode(node, zero_of(wire.dtype(x))), wire.optional_input(2)
    if value is not None:
        value = wire.number(value)
    axes = wire.optional_input(3)
    if axes is None:
        return wire.through(wire_dyn_pad, x, pads, mode, value=value)
    known, chosen = wire.dims(pads), wire.ints(axes, "axes of Pad")
    if known is not None and chosen is not None:
        pairs = _pairs(known, wire.axes(chosen, wire.rank(x)), wire.rank(x))
        flat = wire.const([before for before, _ in pairs] + [after for _, after in pairs])
        return wire.through(wire_dyn_pad, x, flat, mode, value=value)
    moved = wire.through(wire_move_axes, x, axes)
    padded = wire.through(wire_dyn_pad, moved, _for_last_axes(wire, pads, axes, wire.rank(x)), mode, value=value)
    return wire.through(wire_move_axes, padded, axes, back=True)


def _for_last_axes(wire: Wiring, pads: OutletId, axes: OutletId, rank: int) -> OutletId:
    """The pads for all axes, those of the last ones given."""
    count = wire.count(axes, "axes of Pad")
    if wire.count(pads, "pads") != 2 * count:
        raise CorruptModel(f"{wire.count(pads, 'pads')} pads are given for {count} axes, twice as many are wanted")
    none = wire.const((0,) * (rank - count))
    before, after = wire.op(Slice(0, 0, count), pads), wire.op(Slice(0, count, 2 * count), pads)
    return wire.op(TypedConcat(0), none, before, none, after)


def _mode(node: OnnxNode, value: Constant) -> PadMode:
    name = node.choice("mode", ("constant", *_MODES), "constant")
    return _MODES.get(name) or PadConstant(value)


def _pairs(pads: Sequence[Dim], axes: Sequence[int], rank: int) -> list[tuple[Dim, Dim]]:
    """For each axis of the tensor, what is added before and after."""
    if len(pads) != 2 * len(axes):
        raise CorruptModel(f"{len(pads)} pads are given for {len(axes)} axes, twice as many are wanted")
    pairs: list[tuple[Dim, Dim]] = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        pairs[axis] = (pads[place], pads[place + len(axes)])
    return pairs
