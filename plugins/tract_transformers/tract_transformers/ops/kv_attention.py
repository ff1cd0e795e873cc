"""Attention with its cache inside: over the last positions only, or over all of them in 8 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod, sqrt

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_room
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, same_type
from tract_core.plugins.keys import COST, STATE, Array
from tract_core.plugins.tables import Rows
from tract_transformers.ops.kv_cache import check_sizes
from tract_transformers.ops.quantised_kv_cache import FLOATS, SEQUENCE, Stored, stored_behind

ROWS = Rows()


@frozen
class WindowKvSdpa(TypedOp):
    """``softmax(q k scale) v`` over the last ``window`` positions of all turns, those of this one among them.

    ``q``, ``k``, ``v``: [batch, heads, positions, channels], the positions of this turn; each head of k and v is for as
    many heads of q as there are more. Every position of q sees the same ones: all that are kept when those of the turn
    have come. So a turn of one position attends causally; one of several looks ahead in the turn, and where it has more
    than ``window``, its first positions do not see themselves. ``axis``: 2. ``scale``: 1 / sqrt(channels of q) where
    there is none.
    """

    axis: int
    window: int
    scale: float | None = None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """As q, with the channels of v. Raises FactError."""
        if self.window < 1:
            raise FactError(f"{self.name}: a window of {self.window} positions, wanted 1 or more")
        return (_output(self, self.axis, inputs),)


@frozen
class QuantizedKvSdpa(TypedOp):
    """``softmax(q k scale) v`` over the positions of all turns, which are kept in 8 bits.

    Inputs, ``axis`` and what sees what are as for `WindowKvSdpa`. Keys and values are kept as by `QuantizedDynKvCache`.
    """

    axis: int
    scale: float | None = None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """As q, with the channels of v. Raises FactError."""
        return (_output(self, self.axis, inputs),)


def _output(op: TypedOp, axis: int, inputs: Sequence[TypedFact]) -> TypedFact:
    q, k, v = arity(op, inputs, 3)
    same_type(op, inputs)
    found = ", ".join(map(str, inputs))
    if axis != SEQUENCE or {fact.rank for fact in inputs} != {SEQUENCE + 2} or q.datum_type not in FLOATS:
        raise FactError(
            f"{op.name} along axis {axis} of {found}, wanted [batch, heads, positions, channels] of f16, bf16 or f32"
            f" along axis {SEQUENCE}"
        )
    wanted = [(q, k, 0), (q, k, 2), (q, k, 3), (k, v, 0), (k, v, 1), (k, v, 2)]
    if not all(may_equal(a.shape[place], b.shape[place]) for a, b, place in wanted):
        raise FactError(f"{op.name}: the sizes of q, k and v do not fit: {found}")
    heads, shared = q.shape[1], k.shape[1]
    if heads != shared and not (isinstance(heads, int) and isinstance(shared, int) and shared and heads % shared == 0):
        raise FactError(f"{op.name}: {heads} heads of q cannot share {shared} heads of k")
    return q.with_shape((*q.shape[:3], v.shape[3]))


def attend(q: Array, k: Array, v: Array, scale: float | None) -> Array:
    """``softmax(q k scale) v`` in f32, every position of q over all of k and v."""
    batch, heads, length, channels = q.shape
    shared = k.shape[1]
    check_room(3 * 4 * batch * heads * length * k.shape[2])  # scores, powers, weights
    scale = 1 / sqrt(max(channels, 1)) if scale is None else scale
    grouped = q.reshape(batch, shared, heads // max(shared, 1), length, channels)
    scores = np.float32(scale) * (grouped @ k.swapaxes(2, 3)[:, :, None])
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    found = powers / powers.sum(-1, keepdims=True) @ v[:, :, None]
    return found.reshape(batch, heads, length, v.shape[3])


class WindowKvSdpaState:
    """The last keys and values, in the type in which they came and in order; none before the first turn."""

    def __init__(self, op: WindowKvSdpa) -> None:
        self.op = op
        self.past: tuple[Array, Array] | None = None

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The output. Raises RunError where other sizes came before."""
        q, k, v = inputs
        before = (None, None) if self.past is None else self.past
        keys, values = (self._last(past, x) for past, x in zip(before, (k, v), strict=True))
        wide = [one.astype(np.float32) for one in (q, keys, values)]
        found = attend(wide[0], wide[1], wide[2], self.op.scale).astype(q.dtype)
        self.past = keys, values
        return (found,)

    def _last(self, past: Array | None, x: Array) -> Array:
        check_sizes(None if past is None else past.shape, x.shape, SEQUENCE)
        joined = x if past is None else np.concatenate([past, x], SEQUENCE)
        return joined[:, :, -self.op.window :].copy()

    def freeze(self) -> tuple[Array, Array] | None:
        """The last keys and values."""
        return self.past

    def thaw(self, frozen: tuple[Array, Array] | None) -> None:
        """Go back to a snapshot."""
        self.past = frozen


class QuantizedKvSdpaState:
    """All keys and values, quantised; none before the first turn."""

    def __init__(self, op: QuantizedKvSdpa) -> None:
        self.op = op
        self.past: tuple[Stored, Stored] | None = None

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The output. Raises RunError where other sizes came before."""
        q, k, v = inputs
        keys, values = (None, None) if self.past is None else self.past
        keys, values = stored_behind(keys, k, 8, per_channel=True), stored_behind(values, v, 8, per_channel=False)
        check_room(4 * 4 * (prod(keys.shape) + prod(values.shape)))  # in f32, and what they are made of
        found = attend(q.astype(np.float32), keys.tensor(), values.tensor(), self.op.scale).astype(q.dtype)
        self.past = keys, values
        return (found,)

    def freeze(self) -> tuple[Stored, Stored] | None:
        """All keys and values."""
        return self.past

    def thaw(self, frozen: tuple[Stored, Stored] | None) -> None:
        """Go back to a snapshot."""
        self.past = frozen


@ROWS.row(STATE, WindowKvSdpa)
def window_state(op: WindowKvSdpa, session: Session) -> WindowKvSdpaState:
    """Nothing came yet."""
    return WindowKvSdpaState(op)


@ROWS.row(STATE, QuantizedKvSdpa)
def quantised_state(op: QuantizedKvSdpa, session: Session) -> QuantizedKvSdpaState:
    """Nothing came yet."""
    return QuantizedKvSdpaState(op)


@ROWS.row(COST, WindowKvSdpa)
def window_cost(op: WindowKvSdpa, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Two products over a full window."""
    q, _, v = (fact.shape for fact in inputs)
    return {"FMA(F32)": q[0] * q[1] * q[2] * op.window * (q[3] + v[3])}


@ROWS.row(COST, QuantizedKvSdpa)
def quantised_cost(op: QuantizedKvSdpa, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Two products over the positions of one turn, as only a run knows how many came before."""
    q, k, v = (fact.shape for fact in inputs)
    return {"FMA(F32)": q[0] * q[1] * q[2] * k[2] * (q[3] + v[3])}
