"""Pools."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.pool import MaxPool
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Moves, Role

ROWS = Rows()


@ROWS.row(ROLES, MaxPool)
def max_pool(op: MaxPool, model: TypedModel, node: TypedNode) -> Role | None:
    """Some of the elements, unless it says where they were"""
    return Moves() if op.indices is None else None
