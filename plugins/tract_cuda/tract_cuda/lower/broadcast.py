"""Stretched axes: their stride is 0."""

from __future__ import annotations

from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, MultiBroadcastTo)
def lower_broadcast(op: MultiBroadcastTo, site: Site) -> None:
    """A view."""
    (x,) = site.inputs()
    site.place(x.stretched(tuple(site.node.facts[0].shape)))
