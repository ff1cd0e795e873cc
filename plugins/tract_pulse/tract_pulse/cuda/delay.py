"""Tensors as they were some positions ago: views on the positions that were kept, and the pulse behind them."""

from __future__ import annotations

from collections.abc import Sequence

from tract_cuda.lowering import Site
from tract_cuda.table import CUDA
from tract_llvm.program.keeping import Keeping

from tract_core.errors import RunError
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_pulse.ops.delay import Delay

ROWS = Rows()


@frozen
class PastOnDevice(Keeping):
    """The last positions of a stream, all in one tensor."""

    def frozen(self, tensors: Sequence[Array]) -> Array:
        """The positions."""
        return tensors[0].copy()

    def thaw(self, frozen: Array | None, tensors: Sequence[Array]) -> None:
        """The positions; zeros where there were no turns. Raises RunError for other sizes."""
        if frozen is None:
            return
        (past,) = tensors
        if frozen.shape != past.shape:
            raise RunError(
                f"positions of shape {frozen.shape} were kept from the pulse before, this one wants {past.shape}",
                hint="spawn a new state, or give pulses of the sizes that this one was used with",
            )
        past[...] = frozen


@ROWS.row(CUDA, Delay)
def lower_delay(op: Delay, site: Site) -> str | None:
    """The pulse is copied behind what was kept; the result is a view on both."""
    (x,) = site.inputs()
    if not op.kept:
        site.place(x)
        return None
    lowering, axis = site.lowering, op.axis
    why = lowering.why_not_kept([lowering.model.outlet_fact(site.node.inputs[0])])
    if why is not None:
        return why
    pulse, before, behind = x.shape[axis], x.shape[:axis], x.shape[axis + 1 :]
    (past,) = lowering.keep(site.node.node, PastOnDevice(), [(x.element, (*before, op.kept, *behind))])
    joined = lowering.scratch(x.element, (*before, op.kept + pulse, *behind))
    lowering.copy(past, joined.part(axis, 0, op.kept), site.group.nodes)
    lowering.copy(x, joined.part(axis, op.kept, pulse), site.group.nodes)
    lowering.keep_at_end(joined.part(axis, pulse, op.kept), past)
    site.place(joined.part(axis, 0, pulse + op.overlap))
    return None
