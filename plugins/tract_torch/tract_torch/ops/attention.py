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
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import steps

ROWS = Rows()


@aten(ROWS, "aten.scaled_dot_product_attention")
def attention(call: Call, wire: NodeWiring) -> OutletId | Wired:
    """softmax(queries keys^T scale + mask) values, over the last two axes"""
    if call.value("dropout_p"):
        raise Unsupported("attention with dropout", hint="call eval() on the module")
    q, k, v = (call.tensor(name) for name in ("query", "key", "value"))
    kind, rank = q.dtype, q.rank
    if call.lowering.keep_attention and rank in (3, 4):
        return _kept(call, wire, [q.outlet, k.outlet, v.outlet])
    if call.flag("enable_gqa"):
        k, v = (_repeated(x, q.shape[-3]) for x in (k, v))
    if call.lowering.attention_in_f32:
        q, k, v = (x.cast(DatumType.F32) if kind.itemsize < 4 else x for x in (q, k, v))
    scaled = q * _scale(call, q)
    scores = scaled.through(wire_matmul, k.transpose([*range(rank - 2), rank - 1, rank - 2]).outlet)
    mask = call.optional_tensor("attn_mask")
    if call.flag("is_causal"):
        scores = _causal(scores)
    elif mask is not None:
        scores = mask.where(scores, -np.inf) if mask.dtype is DatumType.BOOL else scores + mask.cast(scores.dtype)
    found = scores.op(Softmax((rank - 1,))).through(wire_matmul, v.outlet)
    return (found if mask is None else _zero_where_none(found, mask)).cast(kind)


def _known_scale(call: Call, width: Dim) -> float | None:
    """What scores are multiplied by; None where that follows from a width which may be another"""
    scale = call.value("scale")
    if scale is None:
        return 1 / sqrt(max(width, 1)) if isinstance(width, int) else None
    return float(scale)


def _scale(call: Call, q: Wired) -> Wired | float:
    """What scores are multiplied by, in the type of the queries"""
    width = q.shape[-1]
    scale = _known_scale(call, width)
    if scale is not None:
        return scale
    found = Wired(q.wire, q.wire.const(width)).cast(DatumType.F64).rsqrt()
    return found.cast(q.dtype).reshape((1,) * q.rank)


def _kept(call: Call, wire: NodeWiring, qkv: Sequence[OutletId]) -> OutletId | Wired:
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
    return _zero_where_none(Wired(wire, found), Wired(wire, mask))


def _zero_where_none(found: Wired, mask: Wired) -> Wired:
    """0 for queries whose keys are all left out, which softmax knows nothing about

    They are told by the mask, behind the products, which so remain one attention for whoever computes it as a whole.
    """
    if mask.dtype is not DatumType.BOOL:
        mask = mask.ne(-np.inf)
    return mask.op(Reduce((mask.rank - 1,), Reducer.ANY)).where(found, 0)


def _causal(scores: Wired) -> Wired:
    """The scores of keys up to the place of each query, the rest minus infinity"""
    rows, columns = (Wired(scores.wire, steps(scores.wire, 0, size)) for size in scores.shape[-2:])
    return (rows[:, None] >= columns[None]).where(scores, -np.inf)


def _repeated(x: Wired, heads: Dim) -> Wired:
    """Each head as often as there are heads of queries for it."""
    *batch, own, length, width = x.shape
    times = exact_div(heads, own)
    if times is None:
        raise Unsupported(f"{heads} heads of queries cannot share {own} heads of keys evenly")
    wide = x.unsqueeze([len(batch) + 1]).broadcast((*batch, own, times, length, width))
    return wide.reshape((*batch, heads, length, width))


@aten(ROWS, "higher_order.flex_attention")
def flex_attention(call: Call, wire: NodeWiring) -> OutletId:
    """Refused: what is done to scores and masks is a function of single places"""
    raise Unsupported(
        "flex_attention: its functions of places (score_mod, mask_mod) are not wired",
        hint="call torch.nn.functional.scaled_dot_product_attention, with attn_mask=create_mask(mask_mod, ...), or "
        "with what score_mod adds as a tensor of floats",
    )
