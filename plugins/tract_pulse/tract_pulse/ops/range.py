"""Numbers at equal distances, that go on from pulse to pulse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim, evaluate
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, same_type, scalar, wide
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows
from tract_pulse.ops.position import Position

ROWS = Rows()


@frozen
class PulseRange(TypedOp):
    """``start + i * step`` for the next ``length`` positions i of the stream: two inputs of rank 0 and of one type."""

    length: Dim

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``length`` numbers of the type of the inputs. Raises FactError unless these are real numbers of rank 0."""
        start, _ = arity(self, inputs, 2)
        same_type(self, inputs)
        for fact, role in zip(inputs, ("start", "step"), strict=True):
            scalar(self, fact, role)
        if not (start.datum_type.is_float() or start.datum_type.is_integer()):
            raise FactError(f"PulseRange does not take {start.datum_type.short}")
        return (start.with_shape((self.length,)),)


class RangeState(Position):
    """Where the stream is."""

    def __init__(self, op: PulseRange) -> None:
        super().__init__()
        self.op = op

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """As `Range` computes them: f16 and bf16 in f32, rounded once."""
        start, step = inputs
        count, kind = evaluate(self.op.length, session.symbols), wide(start.dtype)
        begin = self.advance(count)
        steps = np.arange(begin, begin + count).astype(kind)
        return (np.add(start.astype(kind), np.multiply(steps, step.astype(kind))).astype(start.dtype),)


@ROWS.row(STATE, PulseRange)
def state(op: PulseRange, session: Session) -> RangeState:
    """A stream that has not begun."""
    return RangeState(op)


@ROWS.row(COST, PulseRange)
def cost(op: PulseRange, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One multiplication with addition per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(AXES, PulseRange)
def axes(op: PulseRange, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axis of the output comes from nowhere."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [1])
