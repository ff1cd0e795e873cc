"""Elements before the beginning and behind the end of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, axis_in
from tract_core.ops.pad import PadConstant, PadEdge, PadMode, PadReflect
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows
from tract_pulse.ops.delay import along
from tract_pulse.ops.position import filled, inside, known, span

ROWS = Rows()


@frozen
class PulsePad(TypedOp):
    """The stream along ``axis``, with what a `Pad` puts around the signal in place of what is outside of it.

    The signal is at the positions from ``begin`` up to and without ``end``; ``before`` positions in front of it, and
    ``after`` behind it, are those of the padding. Others, further outside, mean nothing. Each pulse repeats the last
    ``overlap`` positions of the one before. Where ``end`` holds a symbol without a value, the signal has not ended.

    What `PadEdge` and `PadReflect` put in front has to be in the same pulse; `PadReflect` wants that behind, too.
    """

    axis: int
    before: int
    after: Dim
    begin: int
    end: Dim
    mode: PadMode
    overlap: int = 0

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for a mode that has no meaning here, or a value of another type."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if not isinstance(self.mode, (PadConstant, PadEdge, PadReflect)):
            raise FactError(f"PulsePad: {type(self.mode).__name__} takes elements from the other end of the signal")
        if isinstance(self.mode, PadConstant) and self.mode.value.datum_type != x.datum_type.storage:
            raise FactError(f"PulsePad: the value is {self.mode.value}, wanted one element of the type of {x}")
        return (x.without_value(),)


@frozen
class FrozenPad:
    """Where the stream is, and the last element of the signal so far, where it is needed.

    ``position``: how much of it came.
    """

    position: int
    last: Array | None


class PadState:
    """Where the stream is. ``last``: the last slice of the signal so far, for what comes behind it."""

    def __init__(self, op: PulsePad) -> None:
        self.op = op
        self.position = 0
        self.last: Array | None = None

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The pulse, with the positions outside of the signal filled."""
        op, (x,) = self.op, inputs
        begin, count = self.position, x.shape[op.axis]
        self.position += max(count - op.overlap, 0)
        end = known(op.end, session)
        front = inside(begin, op.begin, begin, count) if op.before else slice(0, 0)
        behind = slice(count, count)
        if end is not None and known(op.after, session) != 0:
            behind = inside(end, begin + count, begin, count)
        self._remember(x, begin, count, end)
        if span(front):
            x = self._filled(x, front, begin, end, self._first(x, front))
        if span(behind):
            x = self._filled(x, behind, begin, end, self.last)
        return (x,)

    def _remember(self, x: Array, begin: int, count: int, end: int | None) -> None:
        if not isinstance(self.op.mode, PadEdge) or self.op.after == 0:
            return
        signal = inside(self.op.begin, begin + count if end is None else end, begin, count)
        if span(signal):
            self.last = x[along(self.op.axis, signal.stop - 1, signal.stop)].copy()

    def _first(self, x: Array, front: slice) -> Array | None:
        """The first slice of the signal, where it is behind these places of the pulse."""
        axis = self.op.axis
        return x[along(axis, front.stop, front.stop + 1)] if front.stop < x.shape[axis] else None

    def _filled(self, x: Array, places: slice, begin: int, end: int | None, edge: Array | None) -> Array:
        """The pulse, from ``begin`` on, with what the mode puts at some places. ``edge``: what is beside them."""
        mode, axis = self.op.mode, self.op.axis
        if isinstance(mode, PadConstant):
            return filled(x, axis, places, mode.value.array)
        if isinstance(mode, PadReflect):
            ahead = begin - self.op.begin
            read = _mirrored(np.arange(int(places.start) + ahead, int(places.stop) + ahead), end, self.op.begin)
            read = np.clip(
                read + self.op.begin - begin, 0, x.shape[axis] - 1
            )  # those outside of the pulse mean nothing
            return filled(x, axis, places, np.take(x, read, axis))
        return x if edge is None else filled(x, axis, places, edge)

    def freeze(self) -> FrozenPad:
        """A snapshot."""
        return FrozenPad(self.position, self.last)

    def thaw(self, frozen: FrozenPad) -> None:
        """Go back to a snapshot."""
        self.position, self.last = frozen.position, frozen.last


def _mirrored(places: Array, end: int | None, begin: int) -> Array:
    """For places outside of the signal, counted from its beginning, those of which they are the mirror images."""
    if end is None:
        return np.abs(places)
    period = 2 * max(end - begin - 1, 0) or 1
    places = places % period
    return np.minimum(places, period - places) if end - begin > 1 else places * 0


@ROWS.row(STATE, PulsePad)
def state(op: PulsePad, session: Session) -> PadState:
    """A stream that has not begun."""
    return PadState(op)


@ROWS.row(COST, PulsePad)
def cost(op: PulsePad, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, PulsePad)
def axes(op: PulsePad, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but that of the stream, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
