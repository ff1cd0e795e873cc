"""Elements before the beginning and behind the end of a stream, written over what stands there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tract_cpu.draft.lowering import Site
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start
from tract_cpu.program.eventual import ENDLESS, Eventual
from tract_cpu.program.program import NativeStep
from tract_cpu.table import MOVES
from tract_llvm.language.types import INDEX
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.views import View

from tract_core.dims import dim_max
from tract_core.frozen import frozen
from tract_core.ops.pad import PadConstant, PadEdge
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_pulse.cpu.lay import BEFORE_ALL, PlacedPulse
from tract_pulse.cpu.position import advance
from tract_pulse.cpu.tensor import form_there, overwritten
from tract_pulse.ops.pad import FrozenPad, PulsePad

ROWS = Rows()


@frozen
class KeptPad(Keeping):
    """How many positions of the stream came before, and the last one of the signal so far, where that is needed."""

    def frozen(self, tensors: Sequence[Array]) -> FrozenPad:
        """Both."""
        position, *last = tensors
        return FrozenPad(int(position), last[0].copy() if last else None)

    def thaw(self, frozen: FrozenPad, tensors: Sequence[Array]) -> None:
        """Both."""
        position, *last = tensors
        position[...] = np.int64(frozen.position)
        if last and frozen.last is not None:
            last[0][...] = frozen.last


@ROWS.row(GROUPS, PulsePad)
def group_pulse_pad(op: PulsePad, start: Start) -> CpuGroup:
    """Alone, in blocks of channels where the input is."""
    form = form_there(start, op.axis)
    return start.alone(form, list(start.read(form)))


@ROWS.row(MOVES, PulsePad)
def lower_pulse_pad(op: PulsePad, site: Site) -> str | None:
    """What is outside of the signal is written where it is seen, in place where nobody else sees it."""
    why = site.lowering.why_not_kept(site.facts())
    if why is not None:
        return why
    x, steps = overwritten(site, 0)
    one = _one_position(x.view, op.axis)
    keeps_last = isinstance(op.mode, PadEdge) and op.after != 0
    tensors = [(INDEX, ()), *([(one.element, one.shape)] if keeps_last else [])]
    position, *last = site.lowering.keep(site.node.node, KeptPad(), tensors)
    pulse = PlacedPulse(x.view, op.axis, position)
    if last:
        steps.append(pulse.kept(last[0], (op.begin, Eventual(op.end))))
    if op.before:
        steps.append(_before(op, site, pulse))
    if op.after != 0:
        steps.append(_behind(op, site, pulse, last))
    x.place(site, steps)
    advance(site, position, dim_max(x.view.shape[op.axis] - op.overlap, 0))
    return None


def _one_position(view: View, axis: int) -> View:
    return view.part(axis, 0, 1)


def _before(op: PulsePad, site: Site, pulse: PlacedPulse) -> NativeStep:
    if isinstance(op.mode, PadConstant):
        return pulse.laid(_value(op.mode, site, pulse), BEFORE_ALL, op.begin)
    if isinstance(op.mode, PadEdge):
        return pulse.continued(op.begin)
    return pulse.mirrored(BEFORE_ALL, op.begin, (op.begin, Eventual(op.end)))


def _behind(op: PulsePad, site: Site, pulse: PlacedPulse, last: Sequence[View]) -> NativeStep:
    end = Eventual(op.end)
    if isinstance(op.mode, PadConstant):
        return pulse.laid(_value(op.mode, site, pulse), end, ENDLESS)
    if last:
        return pulse.laid(last[0].stretched(pulse.view.shape), end, ENDLESS)
    return pulse.mirrored(end, ENDLESS, (op.begin, end))


def _value(mode: PadConstant, site: Site, pulse: PlacedPulse) -> View:
    value = site.lowering.constant(mode.value.array)
    assert value is not None  # it has the type of the input
    return value.stretched(pulse.view.shape)
