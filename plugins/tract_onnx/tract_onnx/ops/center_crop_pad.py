"""Tensors cut or padded to a size, around their centre."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import PadConstant
from tract_core.ops.slice import wire_dyn_slice
from tract_core.ops.wired import Wired
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
        raise FactError(f"CenterCropPad wants {len(axes)} sizes for axes {list(axes)}, found {wire.fact(wanted)}")
    sizes = {axis: _element(wire, wanted, place) for place, axis in enumerate(axes)}
    none = wire.const((0,))
    before, after = [none] * rank, [none] * rank
    for axis, size in sizes.items():
        own = Wired(wire, wire.const(wire.shape(x)[axis]))
        before[axis], after[axis] = (count.unsqueeze([0]).outlet for count in _halves(own.maximum(size) - own))
    pads = wire.op(TypedConcat(0), *before, *after)
    x = wire.through(wire_dyn_pad, x, pads, PadConstant(zero_of(wire.dtype(x))))
    for axis, size in sizes.items():
        own = Wired(wire, wire.const(wire.shape(x)[axis]))
        start, _ = _halves(own - own.minimum(size))
        x = wire.through(wire_dyn_slice, x, axis, start=start.outlet, end=(start + size).outlet)
    return x


def _element(wire: Wiring, x: OutletId, place: int) -> Wired:
    start, end = wire.const(place), wire.const(place + 1)
    return Wired(wire, wire.number(wire.through(wire_dyn_slice, x, 0, start=start, end=end)))


def _halves(count: Wired) -> tuple[Wired, Wired]:
    half = count / 2
    return half, count - half
