"""Attention and rotary positions as ONNX Runtime has them (domain ``com.microsoft``).

Axes are named as in the equations: ``b`` batch, ``n`` heads (of keys), ``g`` heads of queries for each of keys,
``s`` positions of queries, ``t`` positions of keys, ``h`` elements of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from tract_core.dims import Dim, exact_div, is_symbolic, same_dim
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, And, Ge, Gt, Le, Lt, Max, Min, Mul, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.elementwise import Tanh
from tract_core.ops.gather import Gather, GatherNd
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import Softmax
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
    biases: Sequence[OutletId] = field(default_factory=tuple)
    allowed: Sequence[OutletId] = field(default_factory=tuple)
    sink: OutletId | None = None


def attend(wire: Wiring, q: OutletId, k: OutletId, v: OutletId, scores: Scores) -> OutletId:
    """The values [b, n, t, h], weighted by how well keys [b, n, t, h] fit queries [b, n, g, s, h]: [b, n, g, s, h]."""
    kind = wire.dtype(q)
    q, k, v = (widened(wire, x) for x in (q, k, v))
    found = _einsum(wire, "bngsh,bnth->bngst", wire.op(Mul(), q, wire.scalar(scores.scale, q)), k)
    if scores.softcap:
        cap = wire.scalar(scores.softcap, found)
        found = wire.op(Mul(), wire.op(Tanh(), wire.op(Mul(), found, wire.scalar(1 / scores.softcap, found))), cap)
    for bias in scores.biases:
        found = wire.binary(Add(), found, wire.cast(bias, wire.dtype(found)))
    for allowed in scores.allowed:
        found = wire.select(allowed, found, wire.scalar(-np.inf, found))
    weights = _softmax(wire, found, scores.sink)
    return wire.cast(_einsum(wire, "bngst,bnth->bngsh", weights, v), kind)


def _softmax(wire: Wiring, scores: OutletId, sink: OutletId | None) -> OutletId:
    if sink is None:
        return wire.op(Softmax((4,)), scores)
    size = wire.shape(scores)[4]
    sink = wire.broadcast(wire.unsqueeze(wire.cast(sink, wire.dtype(scores)), [0]), (*wire.shape(scores)[:4], 1))
    weights = wire.op(Softmax((4,)), wire.op(TypedConcat(4), scores, sink))
    return wire.op(Slice(4, 0, size), weights)


def _einsum(wire: Wiring, axes: str, a: OutletId, b: OutletId) -> OutletId:
    return wire.op(EinSum(AxesMapping.parse(axes), accumulator(wire.dtype(a))), a, b)


def _split_heads(wire: Wiring, x: OutletId, heads: int) -> OutletId:
    """[b, s, n * h] as [b, n, s, h]."""
    batch, length, hidden = wire.shape(x)
    size = exact_div(hidden, heads)
    if size is None:
        raise FactError(f"{hidden} elements are not a multiple of {heads} heads, in {wire.fact(x)}")
    return wire.transpose(wire.reshape(x, (batch, length, heads, size)), [0, 2, 1, 3])


def _joined_heads(wire: Wiring, x: OutletId) -> OutletId:
    """[b, n, s, h] as [b, s, n * h]."""
    batch, heads, length, size = wire.shape(x)
    return wire.reshape(wire.transpose(x, [0, 2, 1, 3]), (batch, length, heads * size))


def _heads(node: OnnxNode, name: str) -> int:
    count = node.int(name)
    if count < 1:
        raise CorruptModel(f"attribute {name!r} is {count}, wanted a number of heads")
    return count


def _scale(node: OnnxNode, wire: Wiring, q: OutletId) -> float:
    """The attribute, or one over the root of the size of a head, which is the last axis."""
    if given := node.float("scale", 0.0):
        return given
    size = wire.shape(q)[-1]
    if is_symbolic(size):
        raise Unsupported(f"the size of a head must be known when the model is loaded, found {wire.fact(q)}")
    return float(size) ** -0.5


def _count(wire: Wiring, length: Dim | OutletId) -> OutletId:
    """0, 1, 2 and so on, as i64."""
    end = length if isinstance(length, OutletId) else wire.const(length)
    zero, one = wire.const(np.array(0, np.int64)), wire.const(np.array(1, np.int64))
    return wire.through(wire_range, zero, end, one)


def rotate(wire: Wiring, x: OutletId, cos: OutletId, sin: OutletId, *, interleaved: bool) -> OutletId:
    """Pairs of elements of [b, n, s, h] turned by angles [b or 1, s, half]; elements after the pairs stay.

    A pair is two neighbours, if ``interleaved``, else an element of the first half and its counterpart in the second.
    """
    half, size = wire.shape(cos)[-1], wire.shape(x)[-1]
    if is_symbolic(half) or is_symbolic(size) or 2 * int(half) > int(size):
        raise FactError(f"angles {wire.fact(cos)} do not fit heads {wire.fact(x)}")
    half, size, kind = int(half), int(size), wire.dtype(x)
    x = widened(wire, x)
    cos, sin = (wire.cast(wire.unsqueeze(angle, [1]), wire.dtype(x)) for angle in (cos, sin))
    turned = x if 2 * half == size else wire.op(Slice(3, 0, 2 * half), x)
    shape = wire.shape(turned)
    paired = (*shape[:3], half, 2) if interleaved else (*shape[:3], 2, half)
    axis = 4 if interleaved else 3
    pairs = wire.reshape(turned, paired)
    first, second = (wire.squeeze(wire.op(Slice(axis, i, i + 1), pairs), [axis]) for i in (0, 1))
    new_first = wire.op(Sub(), wire.op(Mul(), first, cos), wire.op(Mul(), second, sin))
    new_second = wire.op(Add(), wire.op(Mul(), first, sin), wire.op(Mul(), second, cos))
    parts = [wire.unsqueeze(part, [axis]) for part in (new_first, new_second)]
    result = wire.reshape(wire.op(TypedConcat(axis), *parts), shape)
    if 2 * half != size:
        result = wire.op(TypedConcat(3), result, wire.op(Slice(3, 2 * half, size), x))
    return wire.cast(result, kind)


def _angles(wire: Wiring, cache: OutletId, positions: OutletId) -> OutletId:
    """The rows of a cache [positions, half] at positions [b or 1, s]."""
    return wire.op(Gather(0), cache, positions)


@onnx_op(ROWS, "RotaryEmbedding", domain=MICROSOFT_DOMAIN)
def rotary_embedding(node: OnnxNode, wire: Wiring) -> OutletId:
    """Pairs of elements of each head turned by angles that depend on the position"""
    if node.flag("is_packed_batching"):
        raise Unsupported("RotaryEmbedding of a packed batch", hint="export with is_packed_batching=0")
    x, positions, cos, sin = (wire.input(slot) for slot in range(4))
    is_split = wire.rank(x) == 4
    heads = x if is_split else _split_heads(wire, x, _rotary_heads(node, wire, x, cos))
    positions = wire.i64(positions)
    if wire.rank(positions) == 1:
        # One number: the position of the first element, in every row of the batch.
        positions = wire.binary(Add(), wire.unsqueeze(positions, [1]), _count(wire, wire.shape(heads)[2]))
    cos, sin = (_angles(wire, cache, positions) for cache in (cos, sin))
    result = rotate(wire, heads, cos, sin, interleaved=node.flag("interleaved"))
    return result if is_split else _joined_heads(wire, result)


def _rotary_heads(node: OnnxNode, wire: Wiring, x: OutletId, cos: OutletId) -> int:
    """The attribute, or as many heads as have just the elements that are turned."""
    if count := node.int("num_heads", 0):
        return count
    count = exact_div(wire.shape(x)[2], 2 * wire.shape(cos)[1])
    if count is None or is_symbolic(count):
        raise CorruptModel("RotaryEmbedding wants an attribute 'num_heads' where only part of a head is turned")
    return int(count)


@onnx_op(ROWS, "MultiHeadAttention", domain=MICROSOFT_DOMAIN)
@rounded_once()
def multi_head_attention(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
    """Attention with as many heads of keys as of queries, and past keys and values in front of the new ones"""
    if node.wants_output(3) or wire.optional(9) is not None or wire.optional(8) is not None:
        raise Unsupported("MultiHeadAttention with shared buffers, beams, or the scores as an output")
    heads = _heads(node, "num_heads")
    q, k, v = _projections(wire, heads)
    past: Dim = 0
    past_k, past_v = wire.optional(6), wire.optional(7)
    if past_k is not None and past_v is not None:
        past = wire.shape(past_k)[2]
        k, v = wire.op(TypedConcat(2), past_k, k), wire.op(TypedConcat(2), past_v, v)
    biases = [_five_axes(wire, bias)] if (bias := wire.optional(5)) is not None else []
    if (mask := wire.optional(4)) is not None:
        biases.append(_padding_bias(node, wire, mask, q, k))
    causal = [_seen(wire, q, k, past)] if node.flag("unidirectional") else []
    scores = Scores(_scale(node, wire, q), biases=biases, allowed=causal)
    result = attend(wire, wire.unsqueeze(q, [2]), k, v, scores)
    return _joined_heads(wire, wire.squeeze(result, [2])), k, v


def _projections(wire: Wiring, heads: int) -> tuple[OutletId, OutletId, OutletId]:
    """Queries, keys and values as [b, n, s, h], from any of the layouts, with their bias."""
    q, k, v, bias = wire.input(0), wire.optional(1), wire.optional(2), wire.optional(3)
    if k is None:
        parts = _unpacked(wire, q, 3)
    elif v is None:
        parts = [_split_heads(wire, q, heads), *_unpacked(wire, k, 2)]
    else:
        parts = [x if wire.rank(x) == 4 else _split_heads(wire, x, heads) for x in (q, k, v)]
    if bias is not None:
        # Keys and values that come with four axes were projected elsewhere, bias and all.
        count = 1 if k is not None and wire.rank(k) == 4 else 3
        parts = [*_biased(wire, parts[:count], bias), *parts[count:]]
    return parts[0], parts[1], parts[2]


def _unpacked(wire: Wiring, x: OutletId, count: int) -> list[OutletId]:
    """The parts of [b, s, n, count, h], each as [b, n, s, h]."""
    if wire.rank(x) != 5:
        raise FactError(f"{count} packed tensors want five axes, found {wire.fact(x)}")
    parts = [wire.squeeze(wire.op(Slice(3, i, i + 1), x), [3]) for i in range(count)]
    return [wire.transpose(part, [0, 2, 1, 3]) for part in parts]


def _biased(wire: Wiring, parts: Sequence[OutletId], bias: OutletId) -> list[OutletId]:
    """Each part plus its own piece of a list that holds one number per head and element of all of them."""
    found: list[OutletId] = []
    start: Dim = 0
    for part in parts:
        _, heads, _, size = wire.shape(part)
        piece = wire.op(Slice(0, start, start + heads * size), bias)
        found.append(wire.binary(Add(), part, wire.reshape(piece, (heads, 1, size))))
        start = start + heads * size
    return found


def _five_axes(wire: Wiring, x: OutletId) -> OutletId:
    """[b, n, s, t] as [b, n, 1, s, t]."""
    if wire.rank(x) != 4:
        raise FactError(f"the bias of attention wants four axes, found {wire.fact(x)}")
    return wire.unsqueeze(x, [2])


def _padding_bias(node: OnnxNode, wire: Wiring, mask: OutletId, q: OutletId, k: OutletId) -> OutletId:
    """What is added to the scores of keys that are padding, by the length of each row, or by a mask."""
    rank = wire.rank(mask)
    if rank == 1:
        if not may_equal(wire.shape(mask)[0], wire.shape(q)[0]):
            raise Unsupported("MultiHeadAttention with a key_padding_mask that describes packed rows")
        positions = wire.unsqueeze(_count(wire, wire.shape(k)[2]), [0])
        allowed = wire.op(Lt(), positions, wire.unsqueeze(wire.i64(mask), [1]))
    else:
        allowed = wire.op(Gt(), mask, wire.scalar(0, mask))
    allowed = wire.unsqueeze(allowed, [1, 2, 3] if rank < 3 else [1, 2])
    zero, far = (np.full((1,) * 5, value, np.float32) for value in (0, node.float("mask_filter_value", -10000.0)))
    return wire.select(allowed, wire.const(zero), wire.const(far))


def _seen(wire: Wiring, q: OutletId, k: OutletId, past: Dim) -> OutletId:
    """Whether a query may see a key: those up to its own position, which comes after the past ones."""
    here = wire.binary(Add(), _count(wire, wire.shape(q)[2]), wire.const(past))
    there = _count(wire, wire.shape(k)[2])
    seen = wire.op(Le(), wire.unsqueeze(there, [0]), wire.unsqueeze(here, [1]))
    return wire.unsqueeze(seen, [0, 1, 2])


@frozen
class Places:
    """Where things are in a sequence.

    ``first``: the position of each row's first query, [b]; ``queries``: of every query, [b, s]; ``keys``: 0, 1, 2 and
    so on, [t]; ``past``: how many keys the cache holds, valid or not.
    """

    first: OutletId
    queries: OutletId
    keys: OutletId
    past: Dim


@onnx_op(ROWS, "GroupQueryAttention", domain=MICROSOFT_DOMAIN)
def group_query_attention(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
    """Causal attention where several heads of queries share one of keys, whose cache grows

    The cache of each row holds its own number of keys; new ones follow the last valid one.
    """
    if node.wants_output(3) or node.string("k_quant_type", "NONE") != "NONE":
        raise Unsupported("GroupQueryAttention with a quantised cache, or with the scores as an output")
    heads, kv_heads = _heads(node, "num_heads"), _heads(node, "kv_num_heads")
    if heads % kv_heads:
        raise CorruptModel(f"{heads} heads of queries cannot share {kv_heads} heads of keys evenly")
    q, k, v = _query_key_value(wire, heads, kv_heads)
    places = _places(wire, q)
    if node.flag("do_rotary"):
        q, k = _turned(node, wire, q, k, places)
    k, v = (_cached(wire, wire.optional(slot), new, places) for slot, new in ((3, k), (4, v)))
    batch, _, length, size = wire.shape(q)
    grouped = wire.reshape(q, (batch, kv_heads, heads // kv_heads, length, size))
    result = attend(wire, grouped, k, v, _gqa_scores(node, wire, q, places, (kv_heads, heads // kv_heads)))
    return _joined_heads(wire, wire.reshape(result, (batch, heads, length, wire.shape(result)[4]))), k, v


def _query_key_value(wire: Wiring, heads: int, kv_heads: int) -> tuple[OutletId, OutletId, OutletId]:
    """[b, n, s, h] each; where there is one input only, it holds all three beside each other."""
    q, k, v = wire.input(0), wire.optional(1), wire.optional(2)
    if k is not None and v is not None:
        return _split_heads(wire, q, heads), _split_heads(wire, k, kv_heads), _split_heads(wire, v, kv_heads)
    together = _split_heads(wire, q, heads + 2 * kv_heads)
    bounds = (0, heads, heads + kv_heads, heads + 2 * kv_heads)
    parts = [wire.op(Slice(1, bounds[i], bounds[i + 1]), together) for i in range(3)]
    return parts[0], parts[1], parts[2]


def _places(wire: Wiring, q: OutletId) -> Places:
    """From the index of each row's last valid key (input 5), and the length of the longest row (input 6)."""
    length = wire.shape(q)[2]
    past_k = wire.optional(3)
    past: Dim = 0 if past_k is None else wire.shape(past_k)[2]
    zero = wire.const(np.zeros(1, np.int64))
    lengths = wire.i64(wire.sizes(wire.input(5)))
    first = wire.binary(Max(), wire.binary(Sub(), lengths, wire.const(length - 1)), zero)
    queries = wire.binary(Add(), wire.unsqueeze(first, [1]), wire.unsqueeze(_count(wire, length), [0]))
    total = wire.number(wire.i64(wire.input(6)))
    keys = _count(wire, wire.op(Max(), total, wire.const(past)))
    return Places(first, queries, keys, past)


def _turned(node: OnnxNode, wire: Wiring, q: OutletId, k: OutletId, places: Places) -> tuple[OutletId, OutletId]:
    given = wire.optional(9)
    positions = places.queries if given is None else wire.i64(given)
    cos, sin = (_angles(wire, wire.input(slot), positions) for slot in (7, 8))
    interleaved = node.flag("rotary_interleaved")
    return tuple(rotate(wire, x, cos, sin, interleaved=interleaved) for x in (q, k))  # pyright: ignore[reportReturnType]: two


def _cached(wire: Wiring, past: OutletId | None, new: OutletId, places: Places) -> OutletId:
    """New keys or values [b, n, s, h] put into the cache [b, n, past, h] from each row's first position on."""
    length = wire.shape(new)[2]
    together = new if past is None else wire.op(TypedConcat(2), past, new)
    keys, first = wire.unsqueeze(places.keys, [0]), wire.unsqueeze(places.first, [1])
    own = wire.op(Sub(), keys, first)
    is_new = wire.op(
        And(),
        wire.binary(Ge(), own, wire.const(0)),
        wire.binary(Lt(), own, wire.const(length)),
    )
    # A place that is neither new nor in the cache is padding, and any element will do.
    old = wire.binary(Min(), keys, wire.const(places.past + length - 1))
    place = wire.select(is_new, wire.binary(Add(), own, wire.const(places.past)), old)
    found = wire.op(GatherNd(1), wire.transpose(together, [0, 2, 1, 3]), wire.unsqueeze(place, [2]))
    return wire.transpose(found, [0, 2, 1, 3])


def _gqa_scores(node: OnnxNode, wire: Wiring, q: OutletId, places: Places, groups: tuple[int, int]) -> Scores:
    queries, keys = wire.unsqueeze(places.queries, [2]), wire.unsqueeze(places.keys, [0, 1])
    allowed = [wire.op(Le(), keys, queries)]
    window = node.int("local_window_size", -1)
    if window > 0:
        allowed.append(wire.op(Gt(), keys, wire.binary(Sub(), queries, wire.const(window))))
    bias = wire.optional(10)
    return Scores(
        scale=_scale(node, wire, q),
        softcap=node.float("softcap", 0.0),
        biases=() if bias is None else (_grouped_bias(wire, bias, groups),),
        allowed=[wire.unsqueeze(one, [1, 2]) for one in allowed],
        sink=_sink(node, wire, groups),
    )


def _grouped_bias(wire: Wiring, bias: OutletId, groups: tuple[int, int]) -> OutletId:
    batch, count, *places = wire.shape(bias)
    if same_dim(count, 1):
        return wire.unsqueeze(bias, [2])
    return wire.reshape(bias, (batch, *groups, *places))


def _sink(node: OnnxNode, wire: Wiring, groups: tuple[int, int]) -> OutletId | None:
    """The score of a key that is not there, for each head: given, or 0 where the softmax is a smooth one."""
    given = wire.optional(11)
    if given is None and not node.flag("smooth_softmax"):
        return None
    sink = wire.const(np.zeros(groups[0] * groups[1], np.float32)) if given is None else given
    return wire.reshape(sink, (*groups, 1, 1))
