"""Borders around tensors."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.pad import Pad, PadConstant
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Moves, Role

ROWS = Rows()


@ROWS.row(ROLES, Pad)
def pad(op: Pad, model: TypedModel, node: TypedNode) -> Role | None:
    """Some of the elements once more, or zeros"""
    return None if isinstance(op.mode, PadConstant) and op.mode.value.array.any() else Moves()
