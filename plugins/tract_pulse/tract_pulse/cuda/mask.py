"""One value wherever a stream holds no signal."""

from __future__ import annotations

from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

from tract_core.plugins.tables import Rows
from tract_pulse.cuda.pad import add_ends
from tract_pulse.cuda.position import advance, kept_position
from tract_pulse.ops.mask import PulseMask

ROWS = Rows()


@ROWS.row(CUDA, PulseMask)
def lower_pulse_mask(op: PulseMask, site: Site) -> str | None:
    """One kernel, which writes the value where there is no signal."""
    why = site.lowering.why_not_kept(site.node.facts)
    if why is not None:
        return why
    (x,) = site.inputs()
    position, value = kept_position(site), site.lowering.constant(op.value.array)
    add_ends(site, op, position, ("value", "value"), {"value": value})
    advance(site, position, x.shape[op.axis])
    return None
