"""Axes that are made, removed, moved, and cut in another way."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, Reshape, RmAxis
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Moves, Role

ROWS = Rows()


@ROWS.row(ROLES, AddAxis, MoveAxis, Reshape, RmAxis)
def axis(op: AxisOp, model: TypedModel, node: TypedNode) -> Role | None:
    """The same elements"""
    return Moves()
