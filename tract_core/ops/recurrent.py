"""The gates of recurrent networks: what an LSTM or a GRU with the usual activations does after its matrix products.

The networks themselves are loops, wired by `tract_core.ops.recurrent_wiring`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_of_shape, may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, same_rank, same_type, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class LstmEpilogue(TypedOp):
    """The gates of an LSTM: inputs ``preact`` [..., 4*hidden] and ``c_prev`` [..., hidden], outputs h and c.

    The gates lie in the order input, output, forget, cell: ``c = sigmoid(f) * c_prev + sigmoid(i) * tanh(g)``,
    ``h = sigmoid(o) * tanh(c)``.
    """

    hidden: Dim

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Two facts like that of ``c_prev``. Raises FactError when the last axes do not fit."""
        _preact, c_prev = arity(self, inputs, 2)
        _check_last(self, inputs, [4, 1])
        _check_lead(self, inputs)
        return (float_type(self, c_prev), float_type(self, c_prev))


@frozen
class GruEpilogue(TypedOp):
    """The gates of a GRU: inputs ``xh`` and ``rh`` [..., 3*hidden] and ``h_prev`` [..., hidden], output h.

    The gates lie in the order update, reset, hidden; the reset gate multiplies after the matrix product: ``g =
    tanh(xh_g + sigmoid(xh_r + rh_r) * rh_g)``, ``h = (1 - z) * g + z * h_prev`` with ``z = sigmoid(xh_z + rh_z)``.
    """

    hidden: Dim

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of ``h_prev``. Raises FactError when the last axes do not fit."""
        _xh, _rh, h_prev = arity(self, inputs, 3)
        _check_last(self, inputs, [3, 3, 1])
        _check_lead(self, inputs)
        return (float_type(self, h_prev),)


Epilogue = LstmEpilogue | GruEpilogue


def _check_last(op: Epilogue, inputs: Sequence[TypedFact], gates: Sequence[int]) -> None:
    same_type(op, inputs)
    same_rank(op, inputs)
    for slot, (fact, count) in enumerate(zip(inputs, gates, strict=True)):
        if not fact.rank or not may_equal(fact.shape[-1], op.hidden * count):
            raise FactError(f"{op.name}: input {slot} is {fact}, wanted {op.hidden * count} on its last axis")


def _check_lead(op: Epilogue, inputs: Sequence[TypedFact]) -> None:
    for fact in inputs[1:]:
        if not may_be_of_shape(fact.shape[:-1], inputs[0].shape[:-1]):
            raise FactError(f"{op.name}: inputs differ before their last axis: {', '.join(map(str, inputs))}")


def _sigmoid(x: Array) -> Array:
    # As 1 / (1 + exp(-x)), without an exponential that overflows.
    return np.add(0.5, 0.5 * np.tanh(0.5 * x))


def _gates(x: Array, count: int) -> list[Array]:
    return list(np.split(x, count, axis=-1))


@ROWS.row(REFERENCE, LstmEpilogue)
def lstm_epilogue(op: LstmEpilogue, preact: Array, c_prev: Array) -> tuple[Array, Array]:
    """Gates in order i, o, f, g."""
    dtype, compute = c_prev.dtype, wide(c_prev.dtype)
    i, o, f, g = _gates(preact.astype(compute, copy=False), 4)
    c = _sigmoid(f) * c_prev.astype(compute, copy=False) + _sigmoid(i) * np.tanh(g)
    h = _sigmoid(o) * np.tanh(c)
    return h.astype(dtype, copy=False), c.astype(dtype, copy=False)


@ROWS.row(REFERENCE, GruEpilogue)
def gru_epilogue(op: GruEpilogue, xh: Array, rh: Array, h_prev: Array) -> Array:
    """Gates in order z, r, g."""
    dtype, compute = h_prev.dtype, wide(h_prev.dtype)
    x_z, x_r, x_g = _gates(xh.astype(compute, copy=False), 3)
    r_z, r_r, r_g = _gates(rh.astype(compute, copy=False), 3)
    z = _sigmoid(x_z + r_z)
    g = np.tanh(x_g + _sigmoid(x_r + r_r) * r_g)
    return ((1 - z) * g + z * h_prev.astype(compute, copy=False)).astype(dtype, copy=False)


@ROWS.row(MEMORY, LstmEpilogue, GruEpilogue)
def memory(op: Epilogue, made: int, *inputs: Array) -> int:
    """The inputs in a wider type, and the gates"""
    state, each = inputs[-1], wide(inputs[-1].dtype).itemsize
    copied = sum(one.size for one in inputs) if each != state.itemsize else 0
    return each * (copied + 6 * state.size) + made


@ROWS.row(COST, LstmEpilogue, GruEpilogue)
def cost(op: Epilogue, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Per element of the state: an LSTM has 5 activations and 3 products; a GRU 3 activations, 2 products, 4 sums."""
    kind = outputs[0].datum_type.storage.name
    fma, activations = (3, 5) if isinstance(op, LstmEpilogue) else (6, 3)
    elements = product(outputs[0].shape)
    return {f"FMA({kind})": elements * fma, f"DIV({kind})": elements * activations}


@ROWS.row(AXES, LstmEpilogue, GruEpilogue)
def axes(op: Epilogue, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place but the last, which holds the gates."""
    rank = outputs[0].rank
    return AxesMapping.natural_but([fact.rank for fact in inputs], [rank] * len(outputs), [rank - 1])
