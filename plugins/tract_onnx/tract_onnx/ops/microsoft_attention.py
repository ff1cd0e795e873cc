"""Attention and rotary positions as ONNX Runtime has them (domain ``com.microsoft``).

Axes are named as in the equations: ``b`` batch, ``n`` heads (of keys), ``g`` heads of queries for each of keys,
``s`` positions of queries, ``t`` positions of keys, ``h`` elements of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, exact_div, is_symbolic, same_dim
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.gather import Gather, GatherNd
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.precision import rounded_once, widened
from tract_onnx.registry import MICROSOFT_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@frozen
class Scores:
    """What happens to the products of queries and keys.

    ``scale``: what they are multiplied by; ``softcap``: bounds them smoothly (0: not at all); ``biases``: what is
    added; ``allowed``: booleans that say which keys a query may see. Both have five axes, [b, n, g, s, t], or size 1 in
    their place. ``sink``: the score of a key that is not there, of shape [n, g, 1, 1].
    """

    scale: float
    softcap: float = 0.0
    biases: Sequence[Wired] = field(default_factory=tuple)
    allowed: Sequence[Wired] = field(default_factory=tuple)
    sink: Wired | None = None


def attend(q: Wired, k: Wired, v: Wired, scores: Scores) -> Wired:
    """The values [b, n, t, h], weighted by how well keys [b, n, t, h] fit queries [b, n, g, s, h]: [b, n, g, s, h]."""
    kind = q.dtype
    q, k, v = (_wide(x) for x in (q, k, v))
    found = _einsum("bngsh,bnth->bngst", q * scores.scale, k)
    if scores.softcap:
        found = (found * (1 / scores.softcap)).tanh() * scores.softcap
    for bias in scores.biases:
        found = found + bias.cast(found.dtype)
    for allowed in scores.allowed:
        found = allowed.where(found, -np.inf)
    return _einsum("bngst,bnth->bngsh", _softmax(found, scores.sink), v).cast(kind)


def _wide(x: Wired) -> Wired:
    return x.with_outlet(widened(x.wire, x.outlet))


def _softmax(scores: Wired, sink: Wired | None) -> Wired:
    if sink is None:
        return scores.op(Softmax((4,)))
    size = scores.shape[4]
    sink = sink.cast(scores.dtype)[None].broadcast((*scores.shape[:4], 1))
    return scores.concat([sink], 4).op(Softmax((4,))).part(4, 0, size)


def _einsum(axes: str, a: Wired, b: Wired) -> Wired:
    return a.op(EinSum(AxesMapping.parse(axes), accumulator(a.dtype)), b)


def _split_heads(x: Wired, heads: int) -> Wired:
    """[b, s, n * h] as [b, n, s, h]."""
    batch, length, hidden = x.shape
    size = exact_div(hidden, heads)
    if size is None:
        raise FactError(f"{hidden} elements are not a multiple of {heads} heads, in {x.fact}")
    return x.reshape((batch, length, heads, size)).transpose([0, 2, 1, 3])


def _joined_heads(x: Wired) -> Wired:
    """[b, n, s, h] as [b, s, n * h]."""
    batch, heads, length, size = x.shape
    return x.transpose([0, 2, 1, 3]).reshape((batch, length, heads * size))


def _heads(node: OnnxNode, name: str) -> int:
    count = node.integer(name)
    if count < 1:
        raise node.misfit(name, f"is {count}", "a number of heads")
    return count


def _scale(node: OnnxNode, q: Wired) -> float:
    """The attribute, or one over the root of the size of a head, which is the last axis."""
    if given := node.number("scale", 0.0):
        return given
    size = q.shape[-1]
    if is_symbolic(size):
        raise Unsupported(f"the size of a head must be known when the model is loaded, found {q.fact}")
    return float(size) ** -0.5


def _count(wire: Wiring, length: Dim | Wired) -> Wired:
    """0, 1, 2 and so on, as i64."""
    end = length.outlet if isinstance(length, Wired) else wire.const(length)
    zero, one = wire.const(np.array(0, np.int64)), wire.const(np.array(1, np.int64))
    return Wired(wire, wire.through(wire_range, zero, end, one))


def rotate(x: Wired, cos: Wired, sin: Wired, *, interleaved: bool) -> Wired:
    """Pairs of elements of [b, n, s, h] turned by angles [b or 1, s, half]; elements after the pairs stay.

    A pair is two neighbours, if ``interleaved``, else an element of the first half and its counterpart in the second.
    """
    half, size = cos.shape[-1], x.shape[-1]
    if is_symbolic(half) or is_symbolic(size) or 2 * int(half) > int(size):
        raise FactError(f"angles {cos.fact} do not fit heads {x.fact}")
    half, kind, x = int(half), x.dtype, _wide(x)
    cos, sin = (angle[:, None].cast(x.dtype) for angle in (cos, sin))
    turned = x[..., : 2 * half]
    axis = 4 if interleaved else 3
    pairs = turned.reshape((*turned.shape[:3], half, 2) if interleaved else (*turned.shape[:3], 2, half))
    first, second = (pairs.part(axis, i, i + 1).squeeze([axis]) for i in (0, 1))
    parts = [(first * cos - second * sin).unsqueeze([axis]), (first * sin + second * cos).unsqueeze([axis])]
    result = parts[0].concat(parts[1:], axis).reshape(turned.shape)
    if 2 * half != size:
        result = result.concat([x[..., 2 * half :]], 3)
    return result.cast(kind)


def _angles(cache: Wired, positions: Wired) -> Wired:
    """The rows of a cache [positions, half] at positions [b or 1, s]."""
    return cache.op(Gather(0), positions)


@onnx_op(ROWS, "RotaryEmbedding", domain=MICROSOFT_DOMAIN)
def rotary_embedding(node: OnnxNode, wire: Wiring) -> Wired:
    """Pairs of elements of each head turned by angles that depend on the position"""
    if node.flag("is_packed_batching"):
        raise Unsupported("RotaryEmbedding of a packed batch", hint="export with is_packed_batching=0")
    x, positions, cos, sin = (wire.tensor(slot) for slot in range(4))
    is_split = x.rank == 4
    heads = x if is_split else _split_heads(x, _rotary_heads(node, x, cos))
    positions = positions.cast(DatumType.I64)
    if positions.rank == 1:
        # One number: the position of the first element, in every row of the batch.
        positions = positions[:, None] + _count(wire, heads.shape[2])
    cos, sin = (_angles(cache, positions) for cache in (cos, sin))
    result = rotate(heads, cos, sin, interleaved=node.flag("interleaved"))
    return result if is_split else _joined_heads(result)


def _rotary_heads(node: OnnxNode, x: Wired, cos: Wired) -> int:
    """The attribute, or as many heads as have just the elements that are turned."""
    if count := node.integer("num_heads", 0):
        return count
    count = exact_div(x.shape[2], 2 * cos.shape[1])
    if count is None or is_symbolic(count):
        raise CorruptModel("RotaryEmbedding wants an attribute 'num_heads' where only part of a head is turned")
    return int(count)


@onnx_op(ROWS, "MultiHeadAttention", domain=MICROSOFT_DOMAIN)
@rounded_once()
def multi_head_attention(node: OnnxNode, wire: Wiring) -> Sequence[Wired | None]:
    """Attention with as many heads of keys as of queries, and past keys and values in front of the new ones"""
    if node.wants_output(3) or wire.optional_input(9) is not None or wire.optional_input(8) is not None:
        raise Unsupported("MultiHeadAttention with shared buffers, beams, or the scores as an output")
    q, k, v = _projections(wire, _heads(node, "num_heads"))
    past: Dim = 0
    past_k, past_v = wire.optional_tensor(6), wire.optional_tensor(7)
    if past_k is not None and past_v is not None:
        past = past_k.shape[2]
        k, v = past_k.concat([k], 2), past_v.concat([v], 2)
    biases = [_five_axes(bias)] if (bias := wire.optional_tensor(5)) is not None else []
    if (mask := wire.optional_tensor(4)) is not None:
        biases.append(_padding_bias(node, wire, mask, q, k))
    causal = [_seen(wire, q, k, past)] if node.flag("unidirectional") else []
    result = attend(q[:, :, None], k, v, Scores(_scale(node, q), biases=biases, allowed=causal))
    return _joined_heads(result.squeeze([2])), k, v


def _projections(wire: Wiring, heads: int) -> Sequence[Wired]:
    """Queries, keys and values as [b, n, s, h], from any of the layouts, with their bias."""
    q, k, v, bias = wire.tensor(0), *(wire.optional_tensor(slot) for slot in (1, 2, 3))
    if k is None:
        parts = _unpacked(q, 3)
    elif v is None:
        parts = [_split_heads(q, heads), *_unpacked(k, 2)]
    else:
        parts = [x if x.rank == 4 else _split_heads(x, heads) for x in (q, k, v)]
    if bias is None:
        return parts
    # Keys and values that come with four axes were projected elsewhere, bias and all.
    count = 1 if k is not None and k.rank == 4 else 3
    return [*_biased(parts[:count], bias), *parts[count:]]


def _unpacked(x: Wired, count: int) -> list[Wired]:
    """The parts of [b, s, n, count, h], each as [b, n, s, h]."""
    if x.rank != 5:
        raise FactError(f"{count} packed tensors want five axes, found {x.fact}")
    return [part.transpose([0, 2, 1, 3]) for part in [x[..., i, :] for i in range(count)]]


def _biased(parts: Sequence[Wired], bias: Wired) -> list[Wired]:
    """Each part plus its own piece of a list that holds one number per head and element of all of them."""
    found: list[Wired] = []
    start: Dim = 0
    for part in parts:
        _, heads, _, size = part.shape
        found.append(part + bias.part(0, start, start + heads * size).reshape((heads, 1, size)))
        start = start + heads * size
    return found


def _five_axes(x: Wired) -> Wired:
    """[b, n, s, t] as [b, n, 1, s, t]."""
    if x.rank != 4:
        raise FactError(f"the bias of attention wants four axes, found {x.fact}")
    return x[:, :, None]


def _padding_bias(node: OnnxNode, wire: Wiring, mask: Wired, q: Wired, k: Wired) -> Wired:
    """What is added to the scores of keys that are padding, by the length of each row, or by a mask."""
    rank = mask.rank
    if rank == 1:
        if not may_equal(mask.shape[0], q.shape[0]):
            raise Unsupported("MultiHeadAttention with a key_padding_mask that describes packed rows")
        allowed = _count(wire, k.shape[2])[None] < mask.cast(DatumType.I64)[:, None]
    else:
        allowed = mask > 0
    allowed = allowed.unsqueeze([1, 2, 3] if rank < 3 else [1, 2])
    zero, far = (np.full((1,) * 5, value, np.float32) for value in (0, node.number("mask_filter_value", -10000.0)))
    return allowed.where(allowed.operand(zero), allowed.operand(far))


def _seen(wire: Wiring, q: Wired, k: Wired, past: Dim) -> Wired:
    """Whether a query may see a key: those up to its own position, which comes after the past ones."""
    here = _count(wire, q.shape[2]) + past
    there = _count(wire, k.shape[2])
    return (there[None] <= here[:, None])[None, None, None]


@frozen
class Places:
    """Where things are in a sequence.

    ``first``: the position of each row's first query, [b]; ``queries``: of every query, [b, s]; ``keys``: 0, 1, 2 and
    so on, [t]; ``past``: how many keys the cache holds, valid or not.
    """

    first: Wired
    queries: Wired
    keys: Wired
    past: Dim


@onnx_op(ROWS, "GroupQueryAttention", domain=MICROSOFT_DOMAIN)
def group_query_attention(node: OnnxNode, wire: Wiring) -> Sequence[Wired | None]:
    """Causal attention where several heads of queries share one of keys, whose cache grows

    The cache of each row holds its own number of keys; new ones follow the last valid one.
    """
    if node.wants_output(3) or node.text("k_quant_type", "NONE") != "NONE":
        raise Unsupported("GroupQueryAttention with a quantised cache, or with the scores as an output")
    heads, kv_heads = _heads(node, "num_heads"), _heads(node, "kv_num_heads")
    if heads % kv_heads:
        raise CorruptModel(f"{heads} heads of queries cannot share {kv_heads} heads of keys evenly")
    q, k, v = _query_key_value(wire, heads, kv_heads)
    places = _places(wire, q)
    if node.flag("do_rotary"):
        q, k = _turned(node, wire, q, k, places)
    k, v = (_cached(wire.optional_tensor(slot), new, places) for slot, new in ((3, k), (4, v)))
    batch, _, length, size = q.shape
    groups = kv_heads, heads // kv_heads
    grouped = q.reshape((batch, *groups, length, size))
    result = attend(grouped, k, v, _gqa_scores(node, wire, q, places, groups))
    return _joined_heads(result.reshape((batch, heads, length, result.shape[4]))), k, v


def _query_key_value(wire: Wiring, heads: int, kv_heads: int) -> Sequence[Wired]:
    """[b, n, s, h] each; where there is one input only, it holds all three beside each other."""
    q, k, v = wire.tensor(0), wire.optional_tensor(1), wire.optional_tensor(2)
    if k is not None and v is not None:
        return _split_heads(q, heads), _split_heads(k, kv_heads), _split_heads(v, kv_heads)
    together = _split_heads(q, heads + 2 * kv_heads)
    return together[:, :heads], together[:, heads : heads + kv_heads], together[:, heads + kv_heads :]


def _places(wire: Wiring, q: Wired) -> Places:
    """From the index of each row's last valid key (input 5), and the length of the longest row (input 6)."""
    length, past_k = q.shape[2], wire.optional_tensor(3)
    past: Dim = 0 if past_k is None else past_k.shape[2]
    lengths = Wired(wire, wire.sizes(wire.input(5)))
    first = (lengths - (length - 1)).maximum(0)
    queries = first[:, None] + _count(wire, length)[None]
    total = Wired(wire, wire.number(wire.i64(wire.input(6))))
    return Places(first, queries, _count(wire, total.maximum(past)), past)


def _turned(node: OnnxNode, wire: Wiring, q: Wired, k: Wired, places: Places) -> Sequence[Wired]:
    given = wire.optional_tensor(9)
    positions = places.queries if given is None else given.cast(DatumType.I64)
    cos, sin = (_angles(wire.tensor(slot), positions) for slot in (7, 8))
    return [rotate(x, cos, sin, interleaved=node.flag("rotary_interleaved")) for x in (q, k)]


def _cached(past: Wired | None, new: Wired, places: Places) -> Wired:
    """New keys or values [b, n, s, h] put into the cache [b, n, past, h] from each row's first position on."""
    length = new.shape[2]
    together = new if past is None else past.concat([new], 2)
    keys = places.keys[None]
    own = keys - places.first[:, None]
    is_new = (own >= 0) & (own < length)
    # A place that is neither new nor in the cache is padding, and any element will do.
    place = is_new.where(own + places.past, keys.minimum(places.past + length - 1))
    return together.transpose([0, 2, 1, 3]).op(GatherNd(1), place[..., None]).transpose([0, 2, 1, 3])


def _gqa_scores(node: OnnxNode, wire: Wiring, q: Wired, places: Places, groups: tuple[int, int]) -> Scores:
    queries, keys = places.queries[..., None], places.keys[None, None]
    allowed = [keys <= queries]
    window = node.integer("local_window_size", -1)
    if window > 0:
        allowed.append(keys > queries - window)
    bias = wire.optional_tensor(10)
    return Scores(
        scale=_scale(node, q),
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
