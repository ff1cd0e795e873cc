"""Shapes that must be what a file says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.fuse.known import LATE
from tract_llvm.program.views import View

from tract_core.dims import Dim, symbols_of
from tract_core.ops.check import CheckShape
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.sizes import EqualPlan
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


def refusing(site: Site, pairs: Sequence[tuple[Dim, Dim]]) -> None:
    """Add a kernel that refuses where the sizes of a pair differ; none where none can."""
    unsure = [pair for pair in pairs if pair[0] != pair[1]]
    if not unsure:
        return
    given: dict[str, View | Dim] = {"status": site.lowering.status()}
    for number, (left, right) in enumerate(unsure):
        given |= {f"left{number}": left, f"right{number}": right}
    site.launch(EqualPlan(len(unsure)), [1], given, [])


@ROWS.row(CUDA, CheckShape)
def lower_check(op: CheckShape, site: Site) -> str | None:
    """A view, and a kernel that refuses where a size differs."""
    (x,) = site.inputs()
    pairs = [(size, wanted) for size, wanted in zip(x.shape, op.shape, strict=True) if wanted is not None]
    if any(not symbols_of(wanted) <= site.lowering.model.given_symbols() for _, wanted in pairs):
        return LATE
    refusing(site, pairs)
    site.place(replace(x, shape=tuple(site.node.facts[0].shape)))
    return None
