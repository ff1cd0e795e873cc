"""A causal convolution of single channels that takes its signal in pieces, as recurrent language models do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, wide
from tract_core.plugins.keys import COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class CausalConv1dUpdate(TypedOp):
    """Each channel convolved with its own taps over what came before and what comes now, then ``x * sigmoid(x)``.

    Inputs: [batch, channels, positions]; the weights [channels, taps]; the last inputs before these, [batch, channels,
    taps]. Outputs: one of the first input's shape and type, whose element t is made of the inputs t - taps + 1 to t;
    and the last inputs by now. Sums are in f32, those of f64 in f64.
    """

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """As the first and the third input. Raises FactError where they do not fit."""
        x, weight, state = arity(self, inputs, 3)
        found = ", ".join(map(str, inputs))
        if (x.rank, weight.rank, state.rank) != (3, 2, 3):
            raise FactError(
                f"{self.name}: {found}, wanted [batch, channels, positions], [channels, taps], [batch, channels, taps]"
            )
        pairs = [(x, 0, state, 0), (x, 1, state, 1), (x, 1, weight, 0), (weight, 1, state, 2)]
        if not all(may_equal(a.shape[i], b.shape[j]) for a, i, b, j in pairs):
            raise FactError(f"{self.name}: the sizes of {found} do not fit")
        float_type(self, weight)
        return float_type(self, x), float_type(self, state)


@ROWS.row(REFERENCE, CausalConv1dUpdate)
def reference(op: CausalConv1dUpdate, x: Array, weight: Array, state: Array) -> tuple[Array, Array]:
    """A window of taps behind each position, times the weights."""
    kind = _computed(x, weight, state)
    count, taps = x.shape[2], weight.astype(kind)
    signal: Array = np.concatenate([state.astype(kind), x.astype(kind)], 2)
    sums: Array = np.zeros(x.shape, kind)
    for tap in range(weight.shape[1]):
        sums += taps[:, tap, None] * signal[:, :, tap + 1 : tap + 1 + count]
    output = sums / (1 + np.exp(-sums))
    return output.astype(x.dtype), signal[:, :, count:].astype(state.dtype)


def _computed(*arrays: Array) -> np.dtype[Any]:
    return np.result_type(*(wide(one.dtype) for one in arrays))


@ROWS.row(MEMORY, CausalConv1dUpdate)
def memory(op: CausalConv1dUpdate, made: int, x: Array, weight: Array, state: Array) -> int:
    """The signal, and up to three tensors of sums."""
    return made + _computed(x, weight, state).itemsize * (4 * x.size + 2 * state.size + weight.size)


@ROWS.row(COST, CausalConv1dUpdate)
def cost(op: CausalConv1dUpdate, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A product per tap, and a sigmoid: a division."""
    volume, kind = outputs[0].shape.volume, inputs[0].datum_type.storage.name
    return {f"FMA({kind})": volume * inputs[1].shape[1], f"DIV({kind})": volume}
