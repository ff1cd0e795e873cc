"""Elements before and after axes: in blocks of channels where the tensor is, and channels stay as they are."""

from __future__ import annotations

from tract_core.ops.pad import Pad
from tract_core.plugins.tables import Rows
from tract_cpu.group.forms import stays_in_blocks
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start

ROWS = Rows()


@ROWS.row(GROUPS, Pad)
def group_pad(op: Pad, start: Start) -> CpuGroup:
    """Alone."""
    form = start.walk.layouts.padded.get(start.outlet) or start.only_blocked(0)
    return start.alone(form, list(start.read(form))) if form and stays_in_blocks(op, form) else start.alone()
