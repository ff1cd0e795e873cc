"""A tensor as it was some positions ago, with some of what came before it."""

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
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Delay(TypedOp):
    """The stream along ``axis``, ``delay`` positions late, each pulse with the ``overlap`` positions before it.

    A pulse of p positions that begins at position t of the stream gives the positions from ``t - delay - overlap`` up
    to and without ``t - delay + p``. Before the beginning of the stream there are zeros.
    """

    axis: int
    delay: int
    overlap: int = 0

    @property
    def kept(self) -> int:
        """How many positions are kept for the next pulse."""
        return self.delay + self.overlap

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``overlap`` positions more than the input has. Raises FactError for numbers below 0."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if self.delay < 0 or self.overlap < 0:
            raise FactError(f"Delay: delay {self.delay} and overlap {self.overlap}; neither can be negative")
        shape = list(x.shape)
        shape[self.axis] = shape[self.axis] + self.overlap
        return (x.with_shape(shape),)


class DelayState:
    """The last positions of the stream so far; none before the first pulse tells the other sizes."""

    def __init__(self, op: Delay) -> None:
        self.op = op
        self.past: Array | None = None

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """What was kept, and the pulse behind it."""
        op, (x,) = self.op, inputs
        past = zeros_before(x, op.axis, op.kept) if self.past is None else self.past
        joined = np.concatenate([past, x], op.axis)
        end = joined.shape[op.axis]
        self.past = joined[along(op.axis, end - op.kept, end)].copy()
        return (joined[along(op.axis, 0, end - op.delay)],)

    def freeze(self) -> Array | None:
        """The last positions."""
        return self.past

    def thaw(self, frozen: Array | None) -> None:
        """Go back to a snapshot."""
        self.past = frozen


def along(axis: int, start: int, end: int) -> tuple[slice, ...]:
    """The index of the positions from ``start`` up to and without ``end`` of an axis."""
    return (slice(None),) * axis + (slice(start, end),)


def zeros_before(x: Array, axis: int, count: int) -> Array:
    """``count`` positions of zeros, with the other sizes and the type of ``x``."""
    return np.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)


@ROWS.row(STATE, Delay)
def state(op: Delay, session: Session) -> DelayState:
    """A stream that has not begun."""
    return DelayState(op)


@ROWS.row(COST, Delay)
def cost(op: Delay, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention; what is kept counts as elements of a buffer."""
    x = inputs[0]
    kept = x.with_shape((*x.shape[: op.axis], op.kept, *x.shape[op.axis + 1 :]))
    return {f"BUF({x.datum_type.storage.name})": kept.shape.volume}


@ROWS.row(AXES, Delay)
def axes(op: Delay, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but that of the stream, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
