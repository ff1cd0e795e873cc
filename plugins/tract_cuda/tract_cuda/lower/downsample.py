"""Every so many positions of an axis: a view with a longer step."""

from __future__ import annotations

from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Downsample)
def lower_downsample(op: Downsample, site: Site) -> None:
    """A view."""
    (x,) = site.inputs()
    start = op.modulo if op.stride > 0 else x.shape[op.axis] - 1
    site.place(x.part(op.axis, start, site.node.facts[0].shape[op.axis], op.stride))
