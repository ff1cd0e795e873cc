"""What has to hold in a run."""

from __future__ import annotations

import mlx.core as mx

from tract_core.ops.check import CheckShape
from tract_core.plugins.tables import Rows
from tract_metal.layout import Laid
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, CheckShape)
def lower_check(op: CheckShape, site: Site) -> Computed:
    """The input; shapes are known when it is recorded."""

    def checked(x: Laid) -> Laid:
        if any(wanted not in (None, size) for size, wanted in zip(x.shape, op.shape, strict=True)):
            site.refuse_where(mx.array(True))
        return x

    return laid(checked)
