"""Operators that give what they are given."""

from __future__ import annotations

from tract_core.model.identity import Identity, PinConst
from tract_core.ops.cast import AsQuantized
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Identity, PinConst, AsQuantized)
def lower_identity(op: Identity | PinConst | AsQuantized, site: Site) -> None:
    """A view."""
    (x,) = site.inputs()
    site.place(x)
