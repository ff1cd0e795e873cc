"""The part of matrices above or below a diagonal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, integers, scalar
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Trilu(TypedOp):
    """The matrices in the last two axes, with 0 below (``upper``) or above diagonal ``k``, the second input, of rank 0.

    Diagonal 0 is the main one, 1 the next above.
    """

    upper: bool

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the first input. Raises FactError when it has no two axes, or ``k`` is no integer of rank 0."""
        x, k = arity(self, inputs, 2)
        scalar(self, integers(self, k, "k"), "k")
        if x.rank < 2:
            raise FactError(f"Trilu wants matrices, found {x}")
        return (x.without_value(),)


@ROWS.row(REFERENCE, Trilu)
@ROWS.row(SYMBOLIC, Trilu)
def reference(op: Trilu, x: Array, k: Array) -> Array:
    """X where column - row is at least k (upper), or at most k, else 0"""
    rows, columns = (int(size) for size in x.shape[-2:])
    distance = np.arange(columns) - np.arange(rows)[:, None]
    kept = distance >= int(k) if op.upper else distance <= int(k)
    return np.where(kept, x, np.zeros((), x.dtype))


@ROWS.row(MEMORY, Trilu)
def memory(op: Trilu, made: int, x: Array, k: Array) -> int:
    """The distance of each place of one matrix from the diagonal, and whether it is kept"""
    return made + 9 * prod(x.shape[-2:])


@ROWS.row(COST, Trilu)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Trilu)
def axes(op: Trilu, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; the axes of the matrices are disconnected."""
    rank = inputs[0].rank
    return AxesMapping.natural_but([rank, 0], [rank], [rank - 2, rank - 1])
