"""Complex numbers as pairs of real ones, and back: the same memory."""

from __future__ import annotations

from tract_core.ops.fft import ComplexToInnerDim, InnerDimToComplex
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, InnerDimToComplex)
def lower_to_complex(op: InnerDimToComplex, site: Site) -> None:
    """A view; a copy where pairs do not lie side by side."""
    (x,) = site.inputs()
    found = x.as_complex() or site.lowering.compact(x).as_complex()
    if found is None:
        (result,) = site.results()
        site.lowering.copy(x, result.as_parts(), site.group.nodes)
        return
    site.place(found)


@ROWS.row(CUDA, ComplexToInnerDim)
def lower_to_pairs(op: ComplexToInnerDim, site: Site) -> None:
    """A view."""
    (x,) = site.inputs()
    site.place(x.as_parts())
