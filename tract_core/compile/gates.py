"""The gates of recurrent networks: which product of a state is read by the epilogue that makes the next one of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tract_core.compile.groups import Grouper
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue

COUNTS: Final[dict[type, tuple[int, ...]]] = {LstmEpilogue: (4, 1), GruEpilogue: (3, 3, 1)}
"""For each epilogue, how many gates each input holds."""


def epilogue_behind(grouping: Grouper[Any], gates: OutletId, fits: Callable[[TypedNode], bool]) -> TypedNode | None:
    """The epilogue that alone reads a tensor, once, as all of its gates, when all else that it reads is there.

    ``fits``: whether a node can be part of the group.
    """
    node = grouping.reader_at_one(gates)
    if node is None or not isinstance(node.op, LstmEpilogue | GruEpilogue) or not fits(node):
        return None
    count, hidden = COUNTS[type(node.op)][node.inputs.index(gates)], node.op.hidden
    if count == 1 or not isinstance(hidden, int) or not all(map(grouping.has, set(node.inputs) - {gates})):
        return None
    before, behind = (tuple(grouping.model.outlet_fact(one).shape) for one in (gates, OutletId(node.id)))
    return node if before == (*behind[:-1], hidden * count) else None
