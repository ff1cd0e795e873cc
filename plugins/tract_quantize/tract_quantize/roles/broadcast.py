"""Tensors that are stretched."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Moves, Role

ROWS = Rows()


@ROWS.row(ROLES, MultiBroadcastTo)
def broadcast(op: MultiBroadcastTo, model: TypedModel, node: TypedNode) -> Role | None:
    """The same elements, several times"""
    return Moves()
