"""All of a tensor that has come so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, axis_in
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows
from tract_pulse.ops.delay import along, zeros_before

ROWS = Rows()


@frozen
class Past(TypedOp):
    """The stream along ``axis``, ``delay`` positions late, each pulse with all positions before it, as `Delay` has it.

    ``overlap``: how many of these there are before the first pulse, which are zeros. ``before``: how many more there
    are by now, which grows with each pulse.
    """

    axis: int
    delay: int
    overlap: int
    before: Dim
    announces: ClassVar[tuple[str, ...]] = ("before",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``before + overlap`` positions more than the input has. Raises FactError for numbers below 0."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if self.delay < 0 or self.overlap < 0:
            raise FactError(f"Past: delay {self.delay} and overlap {self.overlap}; neither can be negative")
        shape = list(x.shape)
        shape[self.axis] = shape[self.axis] + self.overlap + self.before
        return (x.with_shape(shape),)


class PastState:
    """The stream so far, in an array that has room for more; none before the first pulse tells the other sizes."""

    def __init__(self, op: Past) -> None:
        self.op = op
        self.room: Array | None = None
        self.count = 0

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """All of it, but for the positions that are not to be seen yet."""
        op, (x,) = self.op, inputs
        if self.room is None:
            self.room, self.count = zeros_before(x, op.axis, op.delay + op.overlap), op.delay + op.overlap
        end = self.count + x.shape[op.axis]
        check_tensor((*x.shape[: op.axis], end, *x.shape[op.axis + 1 :]), x.itemsize)
        if end > self.room.shape[op.axis]:  # twice as much, so that each position is moved a few times at most
            kept = self.room[along(op.axis, 0, self.count)]
            self.room = np.concatenate([kept, zeros_before(x, op.axis, 2 * end - self.count)], op.axis)
        self.room[along(op.axis, self.count, end)] = x
        self.count = end
        return (self.room[along(op.axis, 0, end - op.delay)],)

    def freeze(self) -> Array | None:
        """The stream so far."""
        return None if self.room is None else self.room[along(self.op.axis, 0, self.count)].copy()

    def thaw(self, frozen: Array | None) -> None:
        """Go back to a snapshot."""
        self.room = None if frozen is None else frozen.copy()
        self.count = 0 if frozen is None else frozen.shape[self.op.axis]


@ROWS.row(STATE, Past)
def state(op: Past, session: Session) -> PastState:
    """A stream that has not begun."""
    return PastState(op)


@ROWS.row(COST, Past)
def cost(op: Past, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention; what is kept counts as elements of a buffer."""
    return {f"BUF({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(AXES, Past)
def axes(op: Past, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but that of the stream, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
