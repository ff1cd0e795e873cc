"""Stretched axes: their stride is 0."""

from __future__ import annotations

from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.plugins.tables import Rows
from tract_cpu.lower.lowering import MOVES, Site

ROWS = Rows()


@ROWS.row(MOVES, MultiBroadcastTo)
def lower_broadcast(op: MultiBroadcastTo, site: Site) -> str | None:
    """A view."""
    (x,) = site.known_inputs()
    site.place(x.stretched(tuple(site.node.facts[0].shape)))
    return None
