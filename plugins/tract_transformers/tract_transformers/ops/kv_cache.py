"""A cache of keys or values that grows along one axis: all that came so far, with the newest at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim, linear_in_one_symbol
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, axis_in
from tract_core.plugins.keys import COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class DynKvCache(TypedOp):
    """The positions along ``axis`` of all turns so far, and behind them those of this one.

    ``key``: the name of the cache, which is that of the input and the output that it becomes where a model keeps no
    state. ``past``: how many positions came before this turn. The state tells the value of its symbol.
    """

    key: str
    axis: int
    past: Dim

    tells = ("past",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``past`` positions more than the input has. Raises FactError for a past that no state can tell."""
        (x,) = arity(self, inputs, 1)
        return (with_past(self, x, self.axis, self.past),)


def with_past(op: TypedOp, x: TypedFact, axis: int, past: Dim) -> TypedFact:
    """The fact of ``past`` positions and those of ``x`` behind them, along an axis. Raises FactError."""
    axis_in(op, axis, x.rank)
    if isinstance(past, int) and past < 0:
        raise FactError(f"{op.name}: the past has {past} positions, wanted a number from 0 on")
    if not isinstance(past, int) and ((found := linear_in_one_symbol(past)) is None or found[1] < 0):
        raise FactError(f"{op.name}: the past has {past} positions, wanted a number, or one symbol")
    return x.with_shape([past + size if place == axis else size for place, size in enumerate(x.shape)])


class DynKvCacheState:
    """All positions so far, in an array that nobody writes to; none before the first turn tells the other sizes."""

    def __init__(self, op: DynKvCache) -> None:
        self.op = op
        self.past: Array | None = None

    def told(self) -> tuple[int]:
        """How many positions came so far."""
        return (0 if self.past is None else self.past.shape[self.op.axis],)

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """What came so far, and the input behind it. Raises RunError where other sizes came before."""
        (x,) = inputs
        check_sizes(None if self.past is None else self.past.shape, x.shape, self.op.axis)
        parts = [x] if self.past is None else [self.past, x]
        self.past = np.concatenate(parts, self.op.axis)
        self.past.flags.writeable = False
        return (self.past,)

    def freeze(self) -> Array | None:
        """All positions so far."""
        return self.past

    def thaw(self, frozen: Array | None) -> None:
        """Go back to a snapshot."""
        self.past = frozen


def check_sizes(past: Sequence[int] | None, coming: Sequence[int], axis: int) -> None:
    """Raises RunError where two shapes differ on another axis than that of the positions. ``past``: none at first."""
    if past is None or [*past[:axis], *past[axis + 1 :]] == [*coming[:axis], *coming[axis + 1 :]]:
        return
    held, found = (", ".join("*" if at == axis else str(n) for at, n in enumerate(one)) for one in (past, coming))
    raise RunError(
        f"the cache holds positions of shape [{held}], found [{found}]",
        hint="all turns of a state have the same sizes but for that axis: reset the state for others",
    )


@ROWS.row(STATE, DynKvCache)
def state(op: DynKvCache, session: Session) -> DynKvCacheState:
    """Nothing came yet."""
    return DynKvCacheState(op)


@ROWS.row(COST, DynKvCache)
def cost(op: DynKvCache, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention; what is kept counts as elements of a buffer."""
    (kept,) = outputs
    return {f"BUF({kept.datum_type.storage.name})": kept.shape.volume}
