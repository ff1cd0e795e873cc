"""A range of an axis: a view that begins further in."""

from __future__ import annotations

from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Slice)
def lower_slice(op: Slice, site: Site) -> None:
    """A view. That the range lies inside is a condition of the model, which every run checks."""
    (x,) = site.inputs()
    site.place(x.part(op.axis, op.start, op.end - op.start))
