"""Attention: weighted sums of values, by how well keys fit queries."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from tract_nnef.nnef_only.sdpa import Sdpa

from tract_core.data import DatumType
from tract_core.dims import Dim, exact_div
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Ge, Mul, Ne
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import Rsqrt
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import steps

ROWS = Rows()


@aten(ROWS, "aten.scaled_dot_product_attention")
def attention(call: Call, wire: NodeWiring) -> OutletId:
    """softmax(queries keys^T scale + mask) values, over the last two axes"""
    if call.value("dropout_p"):
        raise Unsupported("attention with dropout", hint="call eval() on the module")
    q, k, v = (call.input(name) for name in ("query", "key", "value"))
    kind, rank = wire.dtype(q), wire.rank(q)
    if call.lowering.keep_attention and rank in (3, 4):
        return _kept(call, wire, [q, k, v])
    if call.flag("enable_gqa"):
        k, v = (_repeated(wire, x, wire.shape(q)[-3]) for x in (k, v))
    if call.lowering.attention_in_f32:
        q, k, v = (wire.cast(x, DatumType.F32) if kind.itemsize < 4 else x for x in (q, k, v))
    order = [*range(rank - 2), rank - 1, rank - 2]
    scores = wire.through(wire_matmul, wire.op(Mul(), q, _scale(call, wire, q)), wire.transpose(k, order))
    mask = call.optional_input("attn_mask")
    if call.flag("is_causal"):
        scores = _causal(wire, scores)
    elif mask is not None:
        scores = _masked(wire, scores, mask)
    weights = wire.op(Softmax((rank - 1,)), scores)
    found = wire.through(wire_matmul, weights, v)
    if mask is not None:
        found = _zero_where_none(wire, found, mask)
    return wire.cast(found, kind)


def _known_scale(call: Call, width: Dim) -> float | None:
    """What scores are multiplied by; None where that follows from a width which may be another"""
    scale = call.value("scale")
    if scale is None:
        return 1 / sqrt(max(width, 1)) if isinstance(width, int) else None
    return float(scale)


def _scale(call: Call, wire: NodeWiring, q: OutletId) -> OutletId:
    """What scores are multiplied by, of the rank and type of the queries"""
    width = wire.shape(q)[-1]
    scale = _known_scale(call, width)
    if scale is not None:
        return wire.scalar(scale, q)
    found = wire.op(Rsqrt(), wire.cast(wire.const(width), DatumType.F64))
    return wire.reshape(wire.cast(found, wire.dtype(q)), (1,) * wire.rank(q))


def _kept(call: Call, wire: NodeWiring, qkv: Sequence[OutletId]) -> OutletId:
    """One operator, where queries and keys begin together as PyTorch has it, and end together as the operator has it"""
    mask, causal = call.optional_input("attn_mask"), call.flag("is_causal")
    lengths = [wire.shape(x)[-2] for x in qkv[:2]]
    if causal and lengths[0] != lengths[1]:
        hint = "give it a mask, or do not keep attention as one operator (reify_sdpa_operator)"
        raise Unsupported(f"causal attention of {lengths[0]} queries to {lengths[1]} keys", hint=hint)
    kind, width = call.kind, wire.shape(qkv[0])[-1]
    scale = _known_scale(call, width)
    if scale is None:
        hint = "give it a scale, or do not keep attention as one operator (reify_sdpa_operator)"
        raise Unsupported(f"attention over heads of {width} elements", hint=hint)
    op = Sdpa(scale, causal, DatumType.F32 if call.lowering.attention_in_f32 and kind.itemsize < 4 else kind)
    if mask is None:
        return wire.op(op, *qkv)
    found = wire.op(op, *qkv, mask if wire.dtype(mask) is DatumType.BOOL else wire.cast(mask, kind))
    return _zero_where_none(wire, found, mask)


def _masked(wire: NodeWiring, scores: OutletId, mask: OutletId) -> OutletId:
    if wire.dtype(mask) is DatumType.BOOL:
        return wire.select(mask, scores, wire.scalar(-np.inf, scores))
    return wire.binary(Add(), scores, wire.cast(mask, wire.dtype(scores)))


def _zero_where_none(wire: NodeWiring, found: OutletId, mask: OutletId) -> OutletId:
    """0 for queries whose keys are all left out, which softmax knows nothing about

    They are told by the mask, behind the products, which so remain one attention for whoever computes it as a whole.
    """
    if wire.dtype(mask) is not DatumType.BOOL:
        mask = wire.op(Ne(), *wire.ranks(mask, wire.scalar(-np.inf, mask)))
    some = wire.op(Reduce((wire.rank(mask) - 1,), Reducer.ANY), mask)
    return wire.select(some, found, wire.scalar(0, found))


def _causal(wire: NodeWiring, scores: OutletId) -> OutletId:
    """The scores of keys up to the place of each query, the rest minus infinity"""
    rows, columns = (steps(wire, 0, wire.shape(scores)[axis]) for axis in (-2, -1))
    seen = wire.op(Ge(), wire.unsqueeze(rows, [1]), wire.unsqueeze(columns, [0]))
    return wire.select(seen, scores, wire.scalar(-np.inf, scores))


def _repeated(wire: NodeWiring, x: OutletId, heads: Dim) -> OutletId:
    """Each head as often as there are heads of queries for it."""
    *batch, own, length, width = wire.shape(x)
    times = exact_div(heads, own)
    if times is None:
        raise Unsupported(f"{heads} heads of queries cannot share {own} heads of keys evenly")
    axis = len(batch) + 1
    wide = wire.broadcast(wire.unsqueeze(x, [axis]), (*batch, own, times, length, width))
    return wire.reshape(wide, (*batch, heads, length, width))


@aten(ROWS, "higher_order.flex_attention")
def flex_attention(call: Call, wire: NodeWiring) -> OutletId:
    """Refused: what is done to scores and masks is a function of single places"""
    raise Unsupported(
        "flex_attention: its functions of places (score_mod, mask_mod) are not wired",
        hint="call torch.nn.functional.scaled_dot_product_attention, with attn_mask=create_mask(mask_mod, ...), or "
        "with what score_mod adds as a tensor of floats",
    )
