"""The tables that say which operators and groups there are kernels for.

``cuda``: a function ``(op, site)`` that adds launches, or that adds nothing and says why there are none.
``cuda_kinds``: the same for groups, by their class. ``cuda_groups``: a function ``(op, grouping, node)`` that gives the
group which begins with a node, or ``None``. What has no row is alone, or left to the host. ``cuda_blocks``: a function
``(op)`` that says of an operator that unpacks bytes how blocks lie among these, or gives ``None``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_core.plugins.tables import TableKey, function_row

LowerFn = Callable[[Any, Any], str | None]
"""``(op, site) -> why not``: see `tract_cuda.lowering.Site`."""

CUDA: TableKey[type, LowerFn] = TableKey("cuda", "how kernels for GPUs compute an operator", function_row)

KindFn = Callable[[Any], str | None]
"""``(site) -> why not``."""

KINDS: TableKey[type, KindFn] = TableKey("cuda_kinds", "how kernels for GPUs compute groups of a kind", function_row)

StartFn = Callable[[Any, Any, Any], Any]
"""``(op, grouping, node) -> group``: see `tract_cuda.group.grouping.CudaGrouper`."""

STARTS: TableKey[type, StartFn] = TableKey(
    "cuda_groups", "which group of kernels for GPUs begins with it", function_row
)

RecordFn = Callable[[Any], Any]
"""``(op) -> record``: see `tract_cuda.blocks.BlockRecord`."""

BLOCKS: TableKey[type, RecordFn] = TableKey(
    "cuda_blocks", "how the blocks lie that an operator unpacks, for kernels for GPUs", function_row
)
