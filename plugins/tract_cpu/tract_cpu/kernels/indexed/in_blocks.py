"""Products of rows with matrices of their own choice, which lie in blocks."""

from __future__ import annotations

from dataclasses import fields, replace

from tract_llvm.language.types import F32
from tract_llvm.language.values import Value

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.kernels.in_blocks.bytes import BYTES
from tract_cpu.kernels.in_blocks.matmul import FEW_ROWS, BlockMatMulPlan, BlockProduct
from tract_cpu.kernels.in_blocks.weights import BlockForm
from tract_cpu.kernels.indexed.matmul import IndexedWriter
from tract_cpu.kernels.indexed.runs import RUNS
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.matmul import MatMulPlan, TilePlace
from tract_cpu.kernels.signature import Signature


@frozen
class IndexedBlockMatMulPlan(BlockMatMulPlan):
    """As of `BlockMatMulPlan` and `IndexedMatMulPlan`: a run has few rows, or many."""

    @property
    def signature(self) -> Signature:
        """In front, what is told of the rows."""
        return Signature.of(*RUNS, *(BYTES if self.bytes is not None else ()), *self.items())

    def emit(self, k: Kernel) -> None:
        """As of `IndexedMatMulPlan`."""
        product = _IndexedInBlocks(self, k)
        with k.loop("task", k.end, k.begin) as task:
            product.task(task)


def indexed_in_blocks(
    plan: MatMulPlan, form: BlockForm, rows: Dim, grouping: DotGrouping | None
) -> IndexedBlockMatMulPlan:
    """The plan of a product of so many rows in all. ``grouping``: of rows as bytes."""
    many = not isinstance(rows, int) or rows >= FEW_ROWS
    given = {one.name: getattr(plan, one.name) for one in fields(plan)}
    return IndexedBlockMatMulPlan(**given, form=form, few=True, many=many, bytes=grouping)


class _IndexedInBlocks(IndexedWriter, BlockProduct):
    """The product while it is written."""

    def run(self, rows: Value, at: TilePlace) -> None:
        """So many rows, with a panel: for many it is unpacked."""
        if not self.plan.many:
            self.few(rows, at)
            return
        with self.k.either(rows < FEW_ROWS) as (few, many):
            with few:
                self.few(rows, at)
            with many:
                panel = self.k.scratch(F32)
                self.unpack(at.right, panel)
                super().run(rows, replace(at, right=panel))
