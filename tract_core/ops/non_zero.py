"""Where elements are not zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class NonZero(TypedOp):
    """The places of all elements that are not zero (false, empty), in row-major order: i64 of shape [rank, ``count``].

    ``count``: how many there will be; a fresh symbol, as a rule.
    """

    count: Dim
    announces: ClassVar[tuple[str, ...]] = ("count",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One row per axis, one column per element found."""
        (x,) = arity(self, inputs, 1)
        return (TypedFact.of(DatumType.I64, (x.rank, self.count)),)


@ROWS.row(REFERENCE, NonZero)
def reference(op: NonZero, x: Array) -> Array:
    """numpy.argwhere, transposed"""
    return np.argwhere(x).T.astype(np.int64)


@ROWS.row(MEMORY, NonZero)
def memory(op: NonZero, made: int, x: Array) -> int:
    """The positions, and a copy in another order"""
    return 2 * np.dtype(np.int64).itemsize * x.ndim * int(np.count_nonzero(x))


@ROWS.row(COST, NonZero)
def cost(op: NonZero, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One comparison per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, NonZero)
def axes(op: NonZero, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said."""
    return AxesMapping.disconnected([inputs[0].rank], [2])
