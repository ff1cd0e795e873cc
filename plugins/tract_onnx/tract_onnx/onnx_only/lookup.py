"""Categories as ones and zeros: the place of each element among keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.ops.lookup import axes, cost, memory, positions
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class OneHotLookup(TypedOp):
    """For each element, ones and zeros (f32) on a new last axis: a one at the place where ``keys`` has it.

    ``strict``: whether an element that is no key is an error; else it gives zeros.
    """

    keys: Constant
    strict: bool

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape and one more axis. Raises FactError unless it has the type of the keys."""
        (x,) = arity(self, inputs, 1)
        if self.keys.array.ndim != 1 or x.datum_type != self.keys.datum_type:
            raise FactError(f"OneHotLookup of {x}, and the keys are {self.keys}")
        return (TypedFact.of(Constant(np.zeros((), np.float32)).datum_type, (*x.shape, len(self.keys.array))),)


@ROWS.row(REFERENCE, OneHotLookup)
def one_hot_lookup(op: OneHotLookup, x: Array) -> Array:
    """Rows of an identity matrix; a row of zeros for what is no key"""
    found = positions(op.keys.array, x)
    if op.strict and (found < 0).any():
        unknown = x.reshape(-1)[int(np.argmax(found < 0))]
        raise RunError(f"{str(unknown)[:80]!r} is none of the {len(op.keys.array)} categories")
    count = len(op.keys.array)
    return (found[:, None] == np.arange(count)).astype(np.float32).reshape((*x.shape, count))


ROWS.add(MEMORY, OneHotLookup, memory)
ROWS.add(COST, OneHotLookup, cost)
ROWS.add(AXES, OneHotLookup, axes)
