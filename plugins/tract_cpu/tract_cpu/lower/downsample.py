"""Every n-th element of an axis, forwards or backwards: a view with a larger stride, or a negative one."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.place.blocked import in_blocks
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, Downsample)
def lower_downsample(op: Downsample, site: Site) -> str | None:
    """A view, in blocks where the tensor is only there in blocks of channels and these stay whole."""
    form = site.group.form
    blocked = form and in_blocks(site.lowering, site.node.inputs[0], form)
    if blocked is not None:
        nothing: tuple[tuple[Dim, Dim], ...] = ((0, 0),) * len(blocked.border)
        site.place_in_blocks(replace(blocked, view=_some(op, site, blocked.view), border=nothing))
        return None
    (x,) = site.known_inputs()
    site.place(_some(op, site, x))
    return None


def _some(op: Downsample, site: Site, x: View) -> View:
    start = op.modulo if op.stride > 0 else x.shape[op.axis] - 1
    return x.part(op.axis, start, site.node.facts[0].shape[op.axis], op.stride)
