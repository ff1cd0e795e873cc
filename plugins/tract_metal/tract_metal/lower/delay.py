"""A stream as it was some positions ago: what streaming models keep most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from tract_core.plugins.tables import Rows
from tract_metal.site import Keeping, Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, "tract_pulse.ops.delay:Delay")
def lower_delay(op: Any, site: Site) -> Keeping:
    """What was kept, and the pulse behind it."""
    lead = (slice(None),) * op.axis

    def step(kept: Sequence[mx.array] | None, x: mx.array) -> tuple[list[mx.array], list[mx.array]]:
        shape = (*x.shape[: op.axis], op.kept, *x.shape[op.axis + 1 :])
        past = mx.zeros(shape, x.dtype) if kept is None else kept[0]
        if past.shape != shape:
            site.refuse_where(mx.array(True))
            past = mx.zeros(shape, x.dtype)
        joined = mx.concatenate([past, x], axis=op.axis)
        end = joined.shape[op.axis]
        return [joined[(*lead, slice(0, end - op.delay))]], [joined[(*lead, slice(end - op.kept, end))]]

    return Keeping(step, lambda kept: kept[0], lambda found: None if found is None else [found])
