"""One value wherever a stream holds no signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, axis_in
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows
from tract_pulse.ops.position import Position, filled, inside, known, span

ROWS = Rows()


@frozen
class PulseMask(TypedOp):
    """The stream along ``axis``, with ``value`` at the positions before ``begin``, and from ``end`` on.

    ``value``: of rank 0, and of the type of the input. Where ``end`` holds a symbol without a value, the signal has not
    ended.
    """

    axis: int
    begin: int
    end: Dim
    value: Constant

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for a value of another type."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if self.value.array.ndim != 0 or self.value.datum_type != x.datum_type.storage:
            raise FactError(f"PulseMask: the value is {self.value}, wanted one element of the type of {x}")
        return (x.without_value(),)


class MaskState(Position):
    """Where the stream is."""

    def __init__(self, op: PulseMask) -> None:
        super().__init__()
        self.op = op

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The pulse, with the positions outside of the signal filled."""
        op, (x,) = self.op, inputs
        count = x.shape[op.axis]
        begin, end = self.advance(count), known(op.end, session)
        front = inside(begin, op.begin, begin, count)
        behind = slice(count, count) if end is None else inside(end, begin + count, begin, count)
        for places in (front, behind):
            if span(places):
                x = filled(x, op.axis, places, op.value.array)
        return (x,)


@ROWS.row(STATE, PulseMask)
def state(op: PulseMask, session: Session) -> MaskState:
    """A stream that has not begun."""
    return MaskState(op)


@ROWS.row(COST, PulseMask)
def cost(op: PulseMask, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, PulseMask)
def axes(op: PulseMask, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but that of the stream, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
