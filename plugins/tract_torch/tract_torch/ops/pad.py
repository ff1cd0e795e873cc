"""Tensors with something around them, and those of which something is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, dim_max, dim_min
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pad import PadConstant, PadEdge, PadMode, PadReflect, PadWrap
from tract_core.ops.wiring_dyn import wire_pad
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_MODES: Final[dict[str, PadMode]] = {"reflect": PadReflect(), "replicate": PadEdge(), "circular": PadWrap()}


@aten(ROWS, "aten.pad")
def pad(call: Call, wire: NodeWiring) -> OutletId:
    """A number, the mirror image, the edge, or the other end around"""
    x = call.input("self")
    return _padded(wire, x, call.dims("pad"), _MODES.get(call.value("mode")) or _constant(call, wire, x))


@aten(ROWS, "aten.constant_pad_nd")
def constant_pad(call: Call, wire: NodeWiring) -> OutletId:
    """A number around"""
    x = call.input("self")
    return _padded(wire, x, call.dims("pad"), _constant(call, wire, x))


def _constant(call: Call, wire: NodeWiring, x: OutletId) -> PadConstant:
    return PadConstant(Constant(np.array(call.value("value") or 0, wire.dtype(x).numpy)))


@aten(ROWS, *(f"aten.reflection_pad{rank}d" for rank in (1, 2, 3)))
def reflection_pad(call: Call, wire: NodeWiring) -> OutletId:
    """The mirror image around"""
    return _padded(wire, call.input("self"), call.dims("padding"), PadReflect())


@aten(ROWS, *(f"aten.replication_pad{rank}d" for rank in (1, 2, 3)))
def replication_pad(call: Call, wire: NodeWiring) -> OutletId:
    """The element at the edge around"""
    return _padded(wire, call.input("self"), call.dims("padding"), PadEdge())


def _padded(wire: NodeWiring, x: OutletId, given: Sequence[Dim], mode: PadMode) -> OutletId:
    """``given``: how many elements before and after, beginning with the last axis; less than 0 cuts off.

    What is mirrored or repeated is from the whole tensor, so that it is cut afterwards.
    """
    pairs: list[tuple[Dim, Dim]] = list(zip(given[::2], given[1::2], strict=True))
    pads = [(0, 0)] * (wire.rank(x) - len(pairs)) + pairs[::-1]
    if isinstance(mode, (PadReflect, PadEdge)) and all(isinstance(one, int) for one in given):
        x = wire.through(wire_pad, x, [(dim_max(before, 0), dim_max(after, 0)) for before, after in pads], mode)
        pads = [(dim_min(before, 0), dim_min(after, 0)) for before, after in pads]
    return wire.through(wire_pad, x, pads, mode)
