"""The tables that say what MLX computes, and how.

``metal``: a function ``(op, site)`` that gives how an operator is computed (`tract_metal.site.Computed`), or a text
that says why it is left to the host. ``metal_kinds``: the same for groups of several nodes, by their class.
``metal_groups``: a function ``(op, grouping, node)`` that gives the group which begins with a node, or ``None``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_core.plugins.tables import TableKey, function_row

LowerFn = Callable[[Any, Any], Any]
"""``(op, site) -> Computed, function or text``: see `tract_metal.site`."""

METAL: TableKey[type, LowerFn] = TableKey("metal", "how MLX computes an operator", function_row)

BlocksFn = Callable[..., Any]
"""``(op, *constants) -> weights``, or ``None``: see `tract_metal.lower.blocks.BlockedWeights`."""

BLOCKS: TableKey[type, BlocksFn] = TableKey("metal_blocks", "how the blocks lie that it unpacks, for MLX", function_row)

KindFn = Callable[[Any, Any], Any]
"""``(group, site) -> Computed, function or text``."""

KINDS: TableKey[type, KindFn] = TableKey("metal_kinds", "how MLX computes groups of a kind", function_row)

StartFn = Callable[[Any, Any, Any], Any]
"""``(op, grouping, node) -> group``: see `tract_metal.group.grouping.MetalGrouper`."""

STARTS: TableKey[type, StartFn] = TableKey("metal_groups", "which group of MLX begins with it", function_row)
