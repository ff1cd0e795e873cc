"""Tensors that are joined, and cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.cat")
def cat(call: Call, wire: NodeWiring) -> OutletId:
    """One behind the other along an axis; empty vectors are left out, whatever the others are"""
    rank = call.result.dim()
    given = [x for x in call.inputs("tensors") if wire.rank(x) == rank]
    parts = [wire.cast(x, call.kind) for x in given]
    axis = call.axis("dim", rank)
    return parts[0] if len(parts) == 1 else wire.op(TypedConcat(axis), *parts)


@aten(ROWS, "aten.stack")
def stack(call: Call, wire: NodeWiring) -> OutletId:
    """One behind the other along a new axis"""
    axis = call.axis("dim", call.result.dim())
    parts = [wire.unsqueeze(wire.cast(x, call.kind), [axis]) for x in call.inputs("tensors")]
    return parts[0] if len(parts) == 1 else wire.op(TypedConcat(axis), *parts)


@aten(ROWS, "aten.split_with_sizes", "aten.split.Tensor", "aten.split_copy.Tensor", "aten.chunk")
@aten(ROWS, "aten.unbind.int", "aten.unbind_copy.int")
def split(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """Pieces along an axis, as long as PyTorch tells; ``unbind`` leaves the axis out"""
    x = call.input("self")
    axis = call.axis("dim", wire.rank(x))
    alone = "unbind" in call.name
    pieces: list[OutletId] = []
    start = 0
    for piece in call.node.meta["val"]:
        assert isinstance(piece, torch.Tensor)
        end = start + (1 if alone else call.dim_of(piece.shape[axis]))
        part = wire.op(Slice(axis, start, end), x)
        pieces.append(wire.squeeze(part, [axis]) if alone else part)
        start = end
    return pieces
