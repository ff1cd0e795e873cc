"""The largest or smallest elements of rows: which loops there are."""

from __future__ import annotations

from typing import Final

from tract_core.dims import product
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_cpu.kernels.topk import TopkPlan
from tract_cpu.lower.loops import collapsed
from tract_cpu.lower.lowering import CPU, Site
from tract_cpu.lower.program import STATUS, Argument, NativeStep

ROWS = Rows()

_MOST: Final = 256
"""How many are kept sorted, element by element; sorting the whole row is quicker for more."""


@ROWS.row(CPU, Topk)
def lower_topk(op: Topk, site: Site) -> str | None:
    """Elements and their positions."""
    if not isinstance(op.k, int) or op.k > _MOST:
        return f"native code keeps up to {_MOST} elements of a row"
    source, count = site.known_inputs()
    results = site.results()
    views = (source, *results)
    others = [axis for axis in range(len(source.shape)) if axis != op.axis]
    loops = collapsed([source.shape[a] for a in others], [[one.strides[a] for a in others] for one in views])
    lanes = site.isa.lanes(source.element.computed.bits) if source.strides[op.axis] == 1 else 0
    plan = TopkPlan(source.element, count.element, op.largest, len(loops), lanes if source.element.kind != "b" else 0)
    arguments: list[Argument] = [source.shape[op.axis], op.k, STATUS, count.address, *(one.address for one in views)]
    arguments += [one.strides[op.axis] for one in views]
    for loop in loops:
        arguments += [loop.size, *loop.strides]
    rows = product(loop.size for loop in loops)
    work = product(source.shape)
    storages = tuple(one.storage for one in results)
    site.add(NativeStep(plan, tuple(arguments), rows, (site.node.node,), storages, work=work))
    return None
