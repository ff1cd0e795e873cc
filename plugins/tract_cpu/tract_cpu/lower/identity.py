"""Operators that hand on what they get: the same memory."""

from __future__ import annotations

from tract_core.model.identity import Identity, PinConst
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, Identity, PinConst)
def lower_identity(op: Identity | PinConst, site: Site) -> str | None:
    """A view."""
    (x,) = site.known_inputs()
    site.place(x)
    return None
