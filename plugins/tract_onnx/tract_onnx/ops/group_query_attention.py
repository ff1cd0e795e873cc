"""Attention whose heads of queries share those of keys, with a cache (``GroupQueryAttention`` of ``com.microsoft``).

Axes are named as in `tract_onnx.ops.heads`. A cache is one of three: each row has its own number of positions in it;
it holds a window, and what leaves it makes room; or, where the user says so, every row is full and the cache grows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, same_dim
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.conditions import may_equal
from tract_core.ops.gather import GatherNd
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.heads import (
    Scores,
    attend,
    count_of_heads,
    counted,
    joined_heads,
    rotate,
    rows_of,
    scale_of,
    split_heads,
    wide,
)
from tract_onnx.registry import MICROSOFT_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@frozen
class Places:
    """Where the tokens of a step are. ``queries``: their positions, [b or 1, s], as integers.

    ``past``: for how many positions the cache that is given has room. ``total``: how many tokens there are with those
    of this step, [b], ``None`` where rows are full; ``fresh``: how many of this step count, [b] or a size.
    """

    queries: Wired
    past: Dim
    total: Wired | None = None
    fresh: Wired | Dim = 0


@frozen
class AttentionCache:
    """What is attended to, and what is kept.

    ``keys``, ``values``: [b, n, t, h]; ``positions``: of them, [b or 1, t]; ``kept``: those for the next step;
    ``there``: whether there is something at each place, [b, t]; ``None`` where only what comes later is not there.
    """

    keys: Wired
    values: Wired
    positions: Wired
    kept: tuple[Wired, Wired]
    there: Wired | None = None


@onnx_op(ROWS, "GroupQueryAttention", domain=MICROSOFT_DOMAIN)
def group_query_attention(node: OnnxNode, wire: Wiring) -> Sequence[Wired | None]:
    """Causal attention where several heads of queries share one of keys, whose cache grows

    The cache of each row holds its own number of keys; new ones follow the last valid one.
    """
    _refuse_quantised(node, wire)
    heads, kv_heads = count_of_heads(node, "num_heads"), count_of_heads(node, "kv_num_heads")
    if heads % kv_heads:
        raise CorruptModel(f"{heads} heads of queries cannot share {kv_heads} heads of keys evenly")
    q, k, v = _query_key_value(wire, heads, kv_heads)
    q, k = _normalised(node, wire, q, 14, "q"), _normalised(node, wire, k, 15, "k")
    places = _places(node, wire, q)
    if node.flag("do_rotary"):
        q, k = _turned(node, wire, q, k, places)
    cache = _cached(node, wire, places, k, v)
    batch, _, length, size = q.shape
    groups = kv_heads, heads // kv_heads
    grouped = q.reshape((batch, *groups, length, size))
    result = attend(grouped, cache.keys, cache.values, _scores(node, wire, q, groups, _allowed(node, places, cache)))
    return joined_heads(result.reshape((batch, heads, length, result.shape[4]))), *cache.kept


def _refuse_quantised(node: OnnxNode, wire: Wiring) -> None:
    if node.wants_output(3) or any(node.text(f"{one}_quant_type", "NONE") != "NONE" for one in "kv"):
        raise Unsupported("GroupQueryAttention with a quantised cache, or with the scores as an output")


def _query_key_value(wire: Wiring, heads: int, kv_heads: int) -> Sequence[Wired]:
    """[b, n, s, h] each; where there is one input only, it holds all three beside each other."""
    q, k, v = wire.tensor(0), wire.optional_tensor(1), wire.optional_tensor(2)
    if k is not None and v is not None:
        return split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
    together = split_heads(q, heads + 2 * kv_heads)
    return together[:, :heads], together[:, heads : heads + kv_heads], together[:, heads + kv_heads :]


def _normalised(node: OnnxNode, wire: Wiring, x: Wired, slot: int, name: str) -> Wired:
    """Each head over the root of its mean square, times weights, where there are any."""
    weight = wire.optional_tensor(slot)
    if weight is None:
        return x
    epsilon = node.number(f"{name}_norm_epsilon", node.number("qk_norm_epsilon", 1e-6))
    y = wide(x)
    wire.require_shape("scale", weight.outlet, x.shape[-1:])
    return (y * (y.mean_of_squares([3]) + epsilon).rsqrt() * weight.cast(y.dtype)).cast(x.dtype)


def _places(node: OnnxNode, wire: Wiring, q: Wired) -> Places:
    """From the index of each row's last valid key (input 5), and how many tokens of this step count (input 16)."""
    length, past_k, given = q.shape[2], wire.optional_tensor(3), wire.optional_input(16)
    past: Dim = 0 if past_k is None else past_k.shape[2]
    if node.file.growing_caches:
        return Places(counted(wire, past + length, past)[None], past, fresh=length)
    total = Wired(wire, wire.sizes(wire.input(5))) + 1
    fresh = length if given is None else Wired(wire, wire.sizes(given))
    first = (total - fresh).maximum(0)
    return Places(first[:, None] + counted(wire, length)[None], past, total, fresh)


def _turned(node: OnnxNode, wire: Wiring, q: Wired, k: Wired, places: Places) -> Sequence[Wired]:
    given = wire.optional_tensor(9)
    positions = places.queries if given is None else given.cast(DatumType.I64)
    cos, sin = (rows_of(wire.tensor(slot), positions) for slot in (7, 8))
    return [rotate(x, cos, sin, interleaved=node.flag("rotary_interleaved")) for x in (q, k)]


def _cached(node: OnnxNode, wire: Wiring, places: Places, k: Wired, v: Wired) -> AttentionCache:
    """New keys and values [b, n, s, h] put into the cache [b, n, past, h]."""
    pasts = [wire.optional_tensor(slot) for slot in (3, 4)]
    for past, new in zip(pasts, (k, v), strict=True):
        if past is not None and not (past.rank == 4 and all(may_equal(past.shape[at], new.shape[at]) for at in (1, 3))):
            raise FactError(f"the past is {past.fact}, which does not go in front of {new.fact}")
    pairs = zip(pasts, (k, v), strict=True)
    together = [new if past is None else past.concat([new], 2) for past, new in pairs]
    if places.total is None:
        keys = counted(wire, together[0].shape[2])[None]
        return AttentionCache(together[0], together[1], keys, (together[0], together[1]))
    if node.flag("sliding_window_cache"):
        return _windowed(node, wire, places, places.total, together)
    return _ragged(wire, places, places.total, together)


def _ragged(wire: Wiring, places: Places, total: Wired, together: Sequence[Wired]) -> AttentionCache:
    """New positions from each row's first one on; what is behind its last one stays what it was, and is not seen."""
    longest = Wired(wire, wire.number(wire.i64(wire.input(6))))
    keys = counted(wire, longest.maximum(places.past))[None]
    own = keys - (total - places.fresh).maximum(0)[:, None]
    is_new = (own >= 0) & (own < _beside(places.fresh))
    # A place that is neither new nor in the cache is padding, and any element will do.
    place = is_new.where(own + places.past, keys.minimum(together[0].shape[2] - 1))
    k, v = (_taken(x, place) for x in together)
    return AttentionCache(k, v, keys, (k, v), keys < total[:, None])


def _windowed(node: OnnxNode, wire: Wiring, places: Places, total: Wired, together: Sequence[Wired]) -> AttentionCache:
    """The last positions only are kept, from row 0 on: so many that a window is among them, fewer than there is room.

    As the operator's description says: of T positions, L(T) = T where they fit the capacity C, else T - G * ceil((T -
    C) / G), G being C - W + 1 for a window of W.
    """
    window, capacity = node.integer("local_window_size", -1), places.past
    if window < 1 or wire.optional_input(3) is None:
        raise CorruptModel(f"a cache that holds a window wants one, and a past; local_window_size is {window}")
    gap, length = capacity - window + 1, together[0].shape[2] - capacity
    before = total - places.fresh

    def first(count: Wired) -> Wired:
        over = (count - capacity).maximum(0)
        return (over + (gap - 1)) / gap * gap

    rows, new = counted(wire, capacity)[None], counted(wire, length)[None]
    old = rows + first(before)[:, None]
    old = (old < before[:, None]).where(old, -1)
    fresh = (new < _beside(places.fresh)).where(new + before[:, None], -1)
    positions = old.concat([fresh], 1)
    wanted = rows + first(total)[:, None]
    place = (wanted >= before[:, None]).where(wanted - before[:, None] + capacity, wanted - first(before)[:, None])
    place = place.maximum(0).minimum(together[0].shape[2] - 1)
    k, v = (_taken(x, place) for x in together)
    return AttentionCache(together[0], together[1], positions, (k, v), positions >= 0)


def _beside(count: Wired | Dim) -> Wired | Dim:
    return count[:, None] if isinstance(count, Wired) else count


def _taken(x: Wired, place: Wired) -> Wired:
    """Of [b, n, t, h], the positions in each row of [b, t]."""
    return x.transpose([0, 2, 1, 3]).op(GatherNd(1), place[..., None]).transpose([0, 2, 1, 3])


def _allowed(node: OnnxNode, places: Places, cache: AttentionCache) -> list[Wired]:
    """Which keys a query sees, each [b or 1, s or 1, t]."""
    queries, keys = places.queries[..., None], cache.positions[:, None]
    window, causal = node.integer("local_window_size", -1), node.integer("causal", 1)
    allowed = [keys <= queries] if causal else []
    if window > 0:
        allowed.append(keys > queries - window)
    # What a row has not yet comes after all its queries; of a window, other places are empty.
    if cache.there is not None and (not causal or node.flag("sliding_window_cache")):
        allowed.append(cache.there[:, None])
    return allowed


def _scores(node: OnnxNode, wire: Wiring, q: Wired, groups: tuple[int, int], allowed: Sequence[Wired]) -> Scores:
    bias = wire.optional_tensor(10)
    if bias is not None and node.flag("sliding_window_cache"):
        raise Unsupported("GroupQueryAttention with a bias, and a cache that holds a window")
    return Scores(
        scale=scale_of(node, q),
        softcap=node.number("softcap", 0.0),
        biases=() if bias is None else (_grouped_bias(bias, groups),),
        allowed=[one[:, None, None] for one in allowed],
        sink=_sink(node, wire, groups),
    )


def _grouped_bias(bias: Wired, groups: tuple[int, int]) -> Wired:
    batch, count, *places = bias.shape
    return bias[:, :, None] if same_dim(count, 1) else bias.reshape((batch, *groups, *places))


def _sink(node: OnnxNode, wire: Wiring, groups: tuple[int, int]) -> Wired | None:
    """The score of a key that is not there, for each head: given, or 0 where the softmax is a smooth one."""
    given = wire.optional_tensor(11)
    if given is None and not node.flag("smooth_softmax"):
        return None
    sink = Wired(wire, wire.const(np.zeros(groups[0] * groups[1], np.float32))) if given is None else given
    return sink.reshape((*groups, 1, 1))
