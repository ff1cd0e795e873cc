"""Tensors cut or padded to a size, around their centre."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Max, Min, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import PadConstant
from tract_core.ops.slice import wire_dyn_slice
from tract_core.ops.wiring_dyn import wire_dyn_pad
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring, zero_of

ROWS = Rows()


@onnx_op(ROWS, "CenterCropPad", since=18)
def center_crop_pad(node: OnnxNode, wire: Wiring) -> OutletId:
    """On some axes, the middle of ``x``, or ``x`` amid zeros; an odd element is cut off, or added, at the end"""
    x, wanted = wire.input(0), wire.sizes(wire.input(1))
    rank = wire.rank(x)
    axes = node.axes("axes", rank, range(rank))
    if not may_equal(wire.shape(wanted)[0], len(axes)):
        raise FactError(f"CenterCropPad wants {len(axes)} sizes for axes {axes}, found {wire.fact(wanted)}")
    sizes = {axis: _element(wire, wanted, place) for place, axis in enumerate(axes)}
    none = wire.const((0,))
    before, after = [none] * rank, [none] * rank
    for axis, size in sizes.items():
        own = wire.const(wire.shape(x)[axis])
        missing = wire.op(Sub(), wire.op(Max(), own, size), own)
        before[axis], after[axis] = (wire.unsqueeze(count, [0]) for count in _halves(wire, missing))
    pads = wire.op(TypedConcat(0), *before, *after)
    x = wire.through(wire_dyn_pad, x, pads, PadConstant(zero_of(wire.dtype(x))))
    for axis, size in sizes.items():
        own = wire.const(wire.shape(x)[axis])
        start, _ = _halves(wire, wire.op(Sub(), own, wire.op(Min(), own, size)))
        x = wire.through(wire_dyn_slice, x, axis, start=start, end=wire.op(Add(), start, size))
    return x


def _element(wire: Wiring, x: OutletId, place: int) -> OutletId:
    return wire.number(wire.through(wire_dyn_slice, x, 0, start=wire.const(place), end=wire.const(place + 1)))


def _halves(wire: Wiring, count: OutletId) -> tuple[OutletId, OutletId]:
    half = wire.op(Div(), count, wire.const(2))
    return half, wire.op(Sub(), count, half)
