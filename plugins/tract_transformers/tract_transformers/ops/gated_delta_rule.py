"""The gated delta rule of recurrent language models: a memory of outer products that is corrected at every position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, wide
from tract_core.plugins.keys import COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

_SMALLEST: Final = 1e-6
"""What is added to the sums of squares of queries and keys."""


@frozen
class GatedDeltaRule(TypedOp):
    """At each position and for each head, with q and k of length 1, a state S is corrected, and read.

    ``S <- exp(g) S``, ``S <- S + k (v - k S) beta``, ``output = q S / sqrt(width)``.

    Inputs: ``query`` and ``key`` [batch, positions, heads, width]; ``value`` [batch, positions, value heads, width],
    whose heads are a multiple of the others, each of which is for as many; ``log_decay`` g and ``beta`` [batch,
    positions, value heads]; the state before, [batch, value heads, width, width], with keys along the third axis.
    Outputs: as ``value``, in the type of ``query``; and the state by now. Everything is computed in f32, where an input
    is f64 in f64.
    """

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """As the third input and as the last. Raises FactError where the inputs do not fit."""
        query, key, value, decay, beta, state = arity(self, inputs, 6)
        found = ", ".join(map(str, inputs))
        if [fact.rank for fact in inputs] != [4, 4, 4, 3, 3, 4]:
            raise FactError(f"{self.name}: {found}, wanted tensors of ranks 4, 4, 4, 3, 3 and 4")
        batch, length, shared, width = query.shape
        heads = value.shape[2]
        wanted = [
            (key, (batch, length, shared, width)),
            (value, (batch, length, heads, width)),
            (decay, (batch, length, heads)),
            (beta, (batch, length, heads)),
            (state, (batch, heads, width, width)),
        ]
        if not all(may_equal(a, b) for fact, shape in wanted for a, b in zip(fact.shape, shape, strict=True)):
            raise FactError(f"{self.name}: the sizes of {found} do not fit")
        fits = isinstance(heads, int) and isinstance(shared, int) and shared and heads % shared == 0
        if heads != shared and not fits:
            raise FactError(f"{self.name}: {heads} heads of values cannot share {shared} heads of keys")
        for fact in (key, decay, beta):
            float_type(self, fact)
        return float_type(self, value).with_type(float_type(self, query).datum_type), float_type(self, state)


@ROWS.row(REFERENCE, GatedDeltaRule)
def reference(op: GatedDeltaRule, *inputs: Array) -> tuple[Array, Array]:
    """One position after the other."""
    query, key, value, decay, beta, state = inputs
    kind = np.result_type(*(wide(one.dtype) for one in inputs))
    shared = value.shape[2] // max(query.shape[2], 1)
    q, k = (np.repeat(_of_length_one(one.astype(kind)), shared, 2) for one in (query, key))
    q = q / np.sqrt(kind.type(max(query.shape[3], 1)))
    output, memory = np.zeros(value.shape, kind), state.astype(kind)
    for at in range(value.shape[1]):
        check_run_time()
        memory = memory * np.exp(decay[:, at].astype(kind))[..., None, None]
        known = np.einsum("bhk,bhkv->bhv", k[:, at], memory)
        change = (value[:, at].astype(kind) - known) * beta[:, at, :, None].astype(kind)
        memory = memory + k[:, at][..., None] * change[:, :, None]
        output[:, at] = np.einsum("bhk,bhkv->bhv", q[:, at], memory)
    return output.astype(query.dtype), memory.astype(state.dtype)


def _of_length_one(x: Array) -> Array:
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + x.dtype.type(_SMALLEST))


@ROWS.row(MEMORY, GatedDeltaRule)
def memory(op: GatedDeltaRule, made: int, *inputs: Array) -> int:
    """Queries, keys and the output at full width, and a few states."""
    _, _, value, _, _, state = inputs
    size = max(wide(one.dtype).itemsize for one in inputs)
    return made + size * (6 * value.size + 4 * state.size)


@ROWS.row(COST, GatedDeltaRule)
def cost(op: GatedDeltaRule, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Four products over the state at every position: to fade, to look up, to correct, to read."""
    volume, kind = outputs[0].shape.volume, inputs[5].datum_type.storage.name
    return {f"FMA({kind})": 4 * volume * inputs[5].shape[2]}
