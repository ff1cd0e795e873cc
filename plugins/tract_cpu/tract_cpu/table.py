"""The tables that say which operators there is native code for, and what decides on it.

``cpu``: a function ``(op, site)`` that adds steps to the program, and returns ``None``, or that adds nothing and says
why there is no native code. ``cpu_moves``: the same for operators that only move or convert elements, and so take those
of any type that native code knows. ``cpu_kinds``: the same for groups, by their class, that no row of the operator
computes with which they begin. What has no row is left to the node executor. ``cpu_blocks``: a function
``(op, *constants)`` that says how the blocks lie that an operator unpacks, or ``None``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_core.plugins.tables import TableKey, function_row

LowerFn = Callable[[Any, Any], str | None]
"""``(op, site) -> why not``: see `tract_cpu.draft.lowering.Site`."""

CPU: TableKey[type, LowerFn] = TableKey("cpu", "how native code computes an operator", function_row)
MOVES: TableKey[type, LowerFn] = TableKey(
    "cpu_moves", "how native code computes an operator that only moves or converts its elements", function_row
)

KindFn = Callable[[Any], str | None]
"""``(site) -> why not``."""

KINDS: TableKey[type, KindFn] = TableKey("cpu_kinds", "how native code computes groups of a kind", function_row)

BlocksFn = Callable[..., Any]
"""``(op, *constants) -> weights``, or ``None``: see `tract_cpu.program.block_weights.BlockWeights`."""

BLOCKS: TableKey[type, BlocksFn] = TableKey("cpu_blocks", "how weights lie in blocks that products read", function_row)
