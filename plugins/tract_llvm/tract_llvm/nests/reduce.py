"""Reductions: one pass over each row."""

from __future__ import annotations

from tract_core.ops.reduce import Reduce
from tract_core.plugins.tables import Rows
from tract_llvm.fuse.nest import Nest, nests
from tract_llvm.language.types import ElementType

ROWS = Rows()


@nests(ROWS, lambda op: op.axes, Reduce)
def reduce(op: Reduce, nest: Nest, x: int, result: ElementType) -> int:
    """All elements of a row, reduced to one."""
    return nest.fold(op.reducer, x, result)
