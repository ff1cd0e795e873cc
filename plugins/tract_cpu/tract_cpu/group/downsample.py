"""Every n-th element of an axis: in blocks of channels where the tensor is, and channels stay as they are."""

from __future__ import annotations

from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start

ROWS = Rows()


@ROWS.row(GROUPS, Downsample)
def group_downsample(op: Downsample, start: Start) -> CpuGroup:
    """Alone."""
    form = start.only_blocked(0)
    return start.alone(form, list(start.read(form))) if form and form.axis != op.axis else start.alone()
