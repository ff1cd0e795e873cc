"""Attention as one operator, as archives may hold it. When they are read it becomes operators of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, exact_div, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import float_type, same_type, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Sdpa(TypedOp):
    """``softmax(q k scale + mask) v``, over the last axis of q and k.

    Inputs: q, k and v, [batch, sequence, size] or [batch, heads, sequence, size], where each head of k and v may be for
    several of q, and a mask, which stretches: booleans leave out, floats are added. ``causal``: whether an element of q
    sees those of k up to its own place alone, where the sequences end together. ``acc``: the type in which all is
    computed, at least.
    """

    scale: float
    causal: bool = False
    acc: DatumType = DatumType.F32

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of q, with as many elements in the last axis as v has. Raises FactError for what does not fit."""
        if len(inputs) not in (3, 4) or (self.causal and len(inputs) == 4):
            raise FactError(f"{self.name} wants q, k, v, and a mask unless it is causal, found {len(inputs)} inputs")
        q, k, v = inputs[:3]
        same_type(self, (q, k, v))
        found = ", ".join(map(str, (q, k, v)))
        if q.rank not in (3, 4) or k.rank != q.rank or v.rank != q.rank:
            raise FactError(f"{self.name} wants q, k and v of one rank, 3 or 4, found {found}")
        pairs = [(q.shape[0], k.shape[0]), (k.shape[0], v.shape[0]), (q.shape[-1], k.shape[-1])]
        pairs.append((k.shape[-2], v.shape[-2]))
        heads = q.rank == 3 or (exact_div(q.shape[1], k.shape[1]) is not None and may_equal(k.shape[1], v.shape[1]))
        if not heads or not all(may_equal(one, other) for one, other in pairs):
            raise FactError(f"{self.name} wants q, k and v that go together, found {found}")
        return (TypedFact.of(float_type(self, q).datum_type, (*q.shape[:-1], v.shape[-1])),)


@ROWS.row(REFERENCE, Sdpa)
def reference(op: Sdpa, q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    """In f32 at the least, and rounded once."""
    kind, narrow = wide(q.dtype), q.dtype
    q, k, v = (x.astype(kind, copy=False) for x in (q, k, v))
    if q.ndim == 4 and k.shape[1] != q.shape[1]:
        k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * np.asarray(op.scale, kind)
    if op.causal:
        mask = np.tri(scores.shape[-2], scores.shape[-1], scores.shape[-1] - scores.shape[-2], dtype=bool)
    if mask is not None and mask.dtype == np.bool_:
        scores = np.where(mask, scores, -np.inf)
    elif mask is not None:
        scores = scores + mask.astype(kind)
    with np.errstate(invalid="ignore"):  # rows that see nothing are NaN
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return (weights / weights.sum(-1, keepdims=True) @ v).astype(narrow)


@ROWS.row(MEMORY, Sdpa)
def memory(op: Sdpa, made: int, *inputs: Array) -> int:
    """The inputs in a wider type and for all heads, and the scores: before and after each step, and the mask"""
    q, k, v, *mask = inputs
    each, heads = wide(q.dtype).itemsize, q.shape[1] // max(k.shape[1], 1) if q.ndim == 4 else 1
    scores = q.size // max(q.shape[-1], 1) * k.shape[-2]
    copied = q.size + 2 * (k.size + v.size) * heads
    return each * (copied + 4 * scores + sum(one.size for one in mask)) + 2 * made


@ROWS.row(AXES, Sdpa)
def axes(op: Sdpa, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Not told: whoever computes with axes reads the archive first, where it becomes operators of the core."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])


@ROWS.row(COST, Sdpa)
def cost(op: Sdpa, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """The two products."""
    q, k, v = inputs[:3]
    pairs = product([*q.shape[:-1], k.shape[-2]])
    return {f"FMA({op.acc.name})": pairs * (q.shape[-1] + v.shape[-1])}
