"""Every so manieth element."""

from __future__ import annotations

from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_metal.layout import Laid
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Downsample)
def lower_downsample(op: Downsample, site: Site) -> Computed:
    """x[modulo::stride]"""
    part = slice(op.modulo if op.stride > 0 else None, None, op.stride)
    return laid(lambda x: taken(x, op.axis, part))


def taken(x: Laid, axis: int, part: slice) -> Laid:
    """A part of an axis."""
    place = x.order.index(axis)
    return Laid(x.array[(*(slice(None),) * place, part)], x.order)
