"""What only arranges elements, or repeats them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import Far
from tract_pulse.pulsing.square import SquareNode
from tract_pulse.registry import BAND, WINDOW

ROWS = Rows()


@ROWS.row(BAND, AddAxis, RmAxis, MoveAxis, Reshape, MultiBroadcastTo, Slice, Identity)
def band(op: Any, view: View) -> Far:
    """The same elements."""
    return view.inputs[0]


@ROWS.row(WINDOW, MultiBroadcastTo)
def stretched(op: MultiBroadcastTo, node: SquareNode) -> OutletId:
    """Stretched to the size of the block."""
    return node.wire(MultiBroadcastTo(node.block(op.shape, node.along)), *node.inputs)


@ROWS.row(WINDOW, Reshape)
def reshaped(op: Reshape, node: SquareNode) -> OutletId:
    """Other axes are arranged; rows and columns keep their place at one of the ends."""
    before = _part(node.block(node.input_fact(0).shape, node.along_inputs[0]), op.at, len(op.before))
    return node.wire(
        Reshape(op.at, before, _part(node.block(node.output_facts[0].shape, node.along), op.at, len(op.after))),
        *node.inputs,
    )


def _part(shape: Sequence[Dim], start: int, count: int) -> tuple[Dim, ...]:
    return tuple(shape[start : start + count])
