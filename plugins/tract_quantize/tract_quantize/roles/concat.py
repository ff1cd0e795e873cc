"""Tensors one behind the other."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Joins, Role

ROWS = Rows()


@ROWS.row(ROLES, TypedConcat)
def concat(op: TypedConcat, model: TypedModel, node: TypedNode) -> Role | None:
    """All elements, in the steps of the widest of them"""
    return Joins()
