"""Choose between two tensors, element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.binary import axes as stretching
from tract_core.ops.expect import arity, broadcast_shapes, same_rank, same_type
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Iff(TypedOp):
    """``if_true`` where ``condition`` holds, else ``if_false``; an axis of size 1 stretches to meet the others."""

    by_element: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape, in the type of the last two. Raises FactError for types, ranks or sizes that do not fit."""
        condition, if_true, if_false = arity(self, inputs, 3)
        if not condition.datum_type.is_bool():
            raise FactError(f"Iff wants booleans as condition, found {condition}")
        same_type(self, [if_true, if_false])
        same_rank(self, inputs)
        return (if_true.with_shape(broadcast_shapes(self, [fact.shape for fact in inputs])),)


@ROWS.row(REFERENCE, Iff)
def reference(op: Iff, condition: Array, if_true: Array, if_false: Array) -> Array:
    """numpy.where"""
    return np.where(condition, if_true, if_false)


@ROWS.row(SYMBOLIC, Iff)
def symbolic(op: Iff, condition: Array, if_true: Array, if_false: Array) -> Any:
    """A condition on sizes is 1 or 0, or depends on symbols"""
    return np.frompyfunc(_choose, 3, 1)(condition, if_true, if_false)


def _choose(condition: Dim, if_true: Dim, if_false: Dim) -> Dim:
    # The condition is 1 or 0, so this is exact, and needs no decision where it depends on symbols.
    return if_false + condition * (if_true - if_false)


@ROWS.row(COST, Iff)
def cost(op: Iff, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per element."""
    return {f"FMA({outputs[0].datum_type.storage.name})": outputs[0].shape.volume}


ROWS.add(AXES, Iff, stretching)
