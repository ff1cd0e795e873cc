"""Pools, and the chain behind them: in blocks of channels where the tensor is."""

from __future__ import annotations

from typing import Final

from tract_llvm.elements.expressions import Expression

from tract_core.dims import Dim, dim_max
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.pool_spec import AxisPlan
from tract_core.plugins.tables import Rows
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start

ROWS = Rows()

_FAR: Final = 1 << 12
"""Elements beyond the data that cost nobody anything."""


@ROWS.row(GROUPS, MaxPool, SumPool)
def group_pool(op: Pool, start: Start) -> CpuGroup:
    """The chain is computed of what each window gives; not where its place is asked for too."""
    (fact,), layout = start.facts(), op.pool.data_format
    if not op.pool.rank:
        return start.host("windows without axes have one element each")
    if any(map(_reaches_far, op.pool.plan(op, fact.shape))):
        return start.host("windows reach far beyond the data, which native code goes through")
    element = start.known.element_at(start.node.inputs[0])
    assert element is not None  # who is left to the host was looked at before
    if isinstance(op, MaxPool) and op.indices is not None:
        return start.alone()
    form = start.only_blocked(0)
    # With the channels last, blocks of them do not lie side by side along the last spatial axis, as lines want them.
    at_channels = form is not None and layout.channels_first and form.axis == layout.c_axis(fact.rank)
    form = form if at_channels else None
    return start.epilogue(Expression((element,)), list(start.read(form)), form)


def line_length(plan: AxisPlan) -> Dim:
    """The positions from the first one that a window reads to the last one, of the input or of a window."""
    return dim_max(plan.before + plan.input, (plan.output - 1) * plan.window.stride + plan.window.field)


def _reaches_far(plan: AxisPlan) -> bool:
    """Whether a line with all that windows read is much longer than what is there and what comes out."""
    line = line_length(plan)
    if isinstance(line, int) and isinstance(plan.input, int) and isinstance(plan.output, int):
        return line > _FAR + 4 * (plan.input + plan.output)
    return plan.window.field > _FAR and not (plan.before == 0 and plan.after == 0)
