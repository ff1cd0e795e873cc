"""Axes added, removed, moved and reshaped: the same memory, looked at in another way."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, RmAxis
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.draft.repeats import repeats_later
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, AxisOp)
def lower_axes(op: AxisOp, site: Site) -> None:
    """A view; a copy where the elements do not lie as the new shape would have them."""
    (x,) = site.known_inputs()
    if isinstance(op, MoveAxis):
        site.place(x.transposed(op.permutation(len(x.shape))))
    elif isinstance(op, AddAxis | RmAxis):
        site.place(_with_ones(op, x))
    else:
        place_reshaped(site, x, tuple(site.node.facts[0].shape))


def place_reshaped(site: Site, x: View, shape: Sequence[Dim]) -> None:
    """Let a tensor in another shape be the result; where it repeats positions, only once somebody wants to see them."""
    found = x.shaped(shape)
    if found is not None:
        site.place(found)
        return
    repeated = repeats_later(site.lowering.model, site.outlet, x, shape)
    if repeated is not None:
        site.lowering.repeated[site.outlet] = repeated
    else:
        site.copy_into(x, site.result_in(x.shape))


def _with_ones(op: AddAxis | RmAxis, x: View) -> View:
    shape, strides = list(x.shape), list(x.strides)
    if isinstance(op, AddAxis):
        shape.insert(op.axis, 1)
        strides.insert(op.axis, 0)
    else:
        del shape[op.axis], strides[op.axis]
    return View(x.storage, x.element, tuple(shape), tuple(strides), x.offset)
