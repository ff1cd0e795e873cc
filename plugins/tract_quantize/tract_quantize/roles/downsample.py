"""Every so many positions."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Moves, Role

ROWS = Rows()


@ROWS.row(ROLES, Downsample)
def downsample(op: Downsample, model: TypedModel, node: TypedNode) -> Role | None:
    """Some of the elements"""
    return Moves()
