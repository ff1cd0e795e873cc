"""Tensors one after the other."""

from __future__ import annotations

import mlx.core as mx

from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_metal.layout import Laid
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, TypedConcat)
def lower_concat(op: TypedConcat, site: Site) -> Computed:
    """In the order of axes that the first one has."""

    def joined(*parts: Laid) -> Laid:
        order = parts[0].order
        return Laid(mx.concatenate([one.as_laid(order) for one in parts], order.index(op.axis)), order)

    return laid(joined)
