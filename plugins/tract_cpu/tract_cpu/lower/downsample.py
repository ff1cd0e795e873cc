"""Every n-th element of an axis, forwards or backwards: a view with a larger stride, or a negative one."""

from __future__ import annotations

from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_cpu.lower.lowering import MOVES, Site

ROWS = Rows()


@ROWS.row(MOVES, Downsample)
def lower_downsample(op: Downsample, site: Site) -> str | None:
    """A view."""
    (x,) = site.known_inputs()
    start = op.modulo if op.stride > 0 else x.shape[op.axis] - 1
    site.place(x.part(op.axis, start, site.node.facts[0].shape[op.axis], op.stride))
    return None
