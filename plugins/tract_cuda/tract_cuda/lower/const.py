"""Sizes that are part of the model, and known when a run begins."""

from __future__ import annotations

from typing import Final

from tract_llvm.fuse.known import LATE
from tract_llvm.language.types import I64

from tract_core.dims import symbols_of
from tract_core.model.const import Const
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.sizes import WrittenSizesPlan
from tract_cuda.lowering import Site
from tract_cuda.program import Given
from tract_cuda.table import CUDA

ROWS = Rows()

_MOST: Final = 64
"""How many sizes one kernel writes."""


@ROWS.row(CUDA, Const)
def lower_sizes(op: Const, site: Site) -> str | None:
    """Arrays of numbers lie on the device before the model runs; this is about those of sizes."""
    sizes = op.value.array.reshape(-1).tolist()
    if site.lowering.element(site.outlet) != I64 or not 0 < len(sizes) <= _MOST:
        return f"kernels write up to {_MOST} sizes, as i64"
    if any(not symbols_of(size) <= site.lowering.model.given_symbols() for size in sizes):
        return LATE
    (result,) = site.results()
    given: dict[str, Given] = {f"size{number}": size for number, size in enumerate(sizes)}
    site.launch(WrittenSizesPlan(len(sizes)), [1], {**given, "result": result}, [result])
    return None
