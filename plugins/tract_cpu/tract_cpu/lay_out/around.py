"""Plain tensors that others want elements around: those of a `Pad`, or the zeros that the windows of convolutions read.

Where the rows of an image are long enough, a matrix product writes them so, and nobody copies them. Only tensors whose
channels are last, in whole blocks, are read so where they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tract_core.dims import less_or_equal
from tract_core.model.graph import OutletId
from tract_core.ops.pad import Pad, PadConstant
from tract_cpu.group.forms import form_read
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.reach import border_for
from tract_cpu.program.form import Border

_LONG: Final = 12
"""Rows of so many positions are written one by one in hardly more time than all of them together."""


def pads_around(known: CpuKnown, outlet: OutletId) -> Iterator[OutletId]:
    """What each `Pad` makes of a tensor, in order, where it pays to write the tensor inside of that."""
    found = (OutletId(reader.node) for reader in sorted(known.model.outlet(outlet).successors))
    return (one for one in found if _goes_around(known, one, outlet))


def _goes_around(known: CpuKnown, padded: OutletId, outlet: OutletId) -> bool:
    """Whether a tensor is what a `Pad` with one value makes of another one, so that this pays."""
    op = known.model.nodes[padded.node].op
    if not isinstance(op, Pad) or known.why_unfit(padded.node) is not None:
        return False
    return isinstance(op.mode, PadConstant) and _pays(known, outlet, op.pads)


def zeros_around(known: CpuKnown, outlet: OutletId) -> Border:
    """How many zeros convolutions want around a plain tensor, where they read it as it lies; else nothing."""
    rank = known.model.outlet_fact(outlet).rank
    for reader in sorted(known.model.outlet(outlet).successors):
        form = form_read(known, known.model.nodes[reader.node]) if reader.slot == 0 else None
        if form is not None and form.lies_plain(rank):
            border = border_for(known, outlet, form)[:-1]
            return border if _pays(known, outlet, border) else ()
    return ()


def _pays(known: CpuKnown, outlet: OutletId, border: Border) -> bool:
    """Whether something is around long rows, and nothing around the channels, which are last."""
    shape, grown = known.model.outlet_fact(outlet).shape, [axis for axis, ends in enumerate(border) if ends != (0, 0)]
    return bool(grown) and grown[-1] == len(shape) - 2 and less_or_equal(_LONG, shape[grown[-1]]) is True
