"""Attention over the past and the new positions, with heads of keys that several heads of queries share."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.einsum import EinSum
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_gguf.builders.network import Network
from tract_gguf.builders.rotary import Rotary


@frozen
class Attention:
    """What architectures do differently.

    ``window``: how many positions one sees at most, itself included; ``None`` for all before it. ``scale``: of scores,
    where that is not one over the root of the size of a head. ``cap``: scores stay below it, by a hyperbolic tangent.
    """

    window: int | None = None
    scale: float | None = None
    cap: float | None = None


def attended(
    network: Network,
    layer: int,
    projected: Sequence[Wired],
    rotary: Rotary | None,
    form: Attention,
    *,
    sinks: Wired | None = None,
    bias: Wired | None = None,
) -> tuple[Wired, Wired, Wired]:
    """What is mixed of values [B,S,heads * size], and all keys and values [B,key heads,P+S,size].

    ``projected``: queries, keys and values [B,S,...], with as many elements a position as all heads have.
    ``sinks``: for each head of queries, the score of looking at nothing. ``bias``: what is added to scores, mask and
    all, [1,key heads,shared,S,P+S], where some of these may be 1.
    """
    net, wire = network, NodeWiring(network.model, f"blk.{layer}.attn")
    (batch, count), shared = (net.batch, net.count), net.heads // net.key_heads
    q, k, v = (Wired(wire, one.outlet) for one in projected)
    q = q.reshape((batch, count, net.key_heads, shared, net.key_size))
    k = k.reshape((batch, count, net.key_heads, 1, net.key_size))
    v = v.reshape((batch, count, net.key_heads, net.value_size))
    if rotary is not None:
        q, k = rotary.turned(q), rotary.turned(k)
    past_keys, past_values = (q.with_outlet(one) for one in net.past_of(layer))
    keys = past_keys.concat([k.squeeze([3]).transpose((0, 2, 1, 3))], 2)
    values = past_values.concat([v.transpose((0, 2, 1, 3))], 2)
    scores = _product("bshgd,bhtd->bhgst", q, keys) * float(form.scale or 1 / sqrt(net.key_size))
    if form.cap is not None:
        scores = (scores * (1 / form.cap)).tanh() * form.cap
    scores += net.mask(form.window)[None, None, None] if bias is None else bias
    shares = scores.op(Softmax((4,))) if sinks is None else _beside_nothing(net, scores, sinks)
    mixed = _product("bhgst,bhtd->bshgd", shares, values)
    return mixed.reshape((batch, count, net.heads * net.value_size)), keys, values


def _beside_nothing(net: Network, scores: Wired, sinks: Wired) -> Wired:
    """The softmax of scores [B,H,G,S,T] and of one more for each head, without what that has."""
    shape = (net.key_heads, net.heads // net.key_heads)
    one = Wired(scores.wire, sinks.outlet).reshape((1, *shape, 1, 1))
    one = one.op(MultiBroadcastTo((net.batch, *shape, net.count, 1)))
    return scores.concat([one], 4).op(Softmax((4,)))[..., : net.length]


def _product(expression: str, a: Wired, b: Wired) -> Wired:
    return a.op(EinSum(AxesMapping.parse(expression), DatumType.F32), b)
