"""Tensors before and behind the signal of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import axis_in, common_size, same_rank, same_type
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows
from tract_pulse.ops.delay import along
from tract_pulse.ops.position import Position, inside, known, span

ROWS = Rows()


@frozen
class PulseConcat(TypedOp):
    """Input number ``stream``, with the inputs before it in front of its signal, and those after it behind.

    Along ``axis``, the signal is at the positions from ``begin`` up to and without ``end``. The other inputs are whole,
    and the same in every pulse. Where ``end`` holds a symbol without a value, the signal has not ended.
    """

    axis: int
    stream: int
    begin: int
    end: Dim

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the stream. Raises FactError for types or other sizes that differ."""
        if not 0 <= self.stream < len(inputs):
            raise FactError(f"PulseConcat: input {self.stream} is to be the stream, there are {len(inputs)} inputs")
        same_type(self, inputs)
        rank = same_rank(self, inputs)
        axis_in(self, self.axis, rank)
        for axis in range(rank):
            if axis != self.axis:
                common_size(self, axis, inputs)
        return (inputs[self.stream].without_value(),)


class ConcatState(Position):
    """Where the stream is."""

    def __init__(self, op: PulseConcat) -> None:
        super().__init__()
        self.op = op

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The pulse, with what stands before and behind the signal."""
        op, x = self.op, inputs[self.op.stream]
        before, behind = inputs[: op.stream], inputs[op.stream + 1 :]
        begin, end = self.advance(x.shape[op.axis]), known(op.end, session)
        at = op.begin - sum(piece.shape[op.axis] for piece in before)
        for piece in before:
            x = _laid(x, op.axis, begin, piece, at)
            at += piece.shape[op.axis]
        if end is not None:
            for piece in behind:
                x = _laid(x, op.axis, begin, piece, end)
                end += piece.shape[op.axis]
        return (x,)


def _laid(x: Array, axis: int, begin: int, piece: Array, at: int) -> Array:
    """``x``, a pulse that begins at ``begin``, with a piece in its place from position ``at`` on."""
    places = inside(at, at + piece.shape[axis], begin, x.shape[axis])
    if not span(places):
        return x
    result = x.copy()
    start = begin + places.start - at
    result[along(axis, places.start, places.stop)] = piece[along(axis, start, start + span(places))]
    return result


@ROWS.row(STATE, PulseConcat)
def state(op: PulseConcat, session: Session) -> ConcatState:
    """A stream that has not begun."""
    return ConcatState(op)


@ROWS.row(COST, PulseConcat)
def cost(op: PulseConcat, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, PulseConcat)
def axes(op: PulseConcat, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but that of the stream, which is disconnected."""
    return AxesMapping.natural_but([fact.rank for fact in inputs], [outputs[0].rank], [op.axis])
