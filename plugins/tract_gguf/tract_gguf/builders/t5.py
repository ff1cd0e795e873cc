"""T5 and its relatives (Raffel et al., arXiv:1910.10683): text to text, with scores that depend on how far keys are."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.op import TypedOp
from tract_core.ops.elementwise import GeluApproximate, GeluExact, Silu
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_gguf.builders.attention import Attention, attended
from tract_gguf.builders.halves import across, by_heads, finish_encoder, looked_at
from tract_gguf.builders.layer import Layer, layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()

_FARTHEST: Final = 128
"""From which distance on all keys count as equally far, where nothing is said of it."""

_LARGEST: Final = 1 << 22
"""Distances times heads, for memory."""

_FUNCTIONS: Final[dict[str, TypedOp]] = {
    "gelu_new": GeluApproximate(),
    "gelu": GeluExact(),
    "silu": Silu(),
}


@builds(ROWS, "t5.encoder")
def encoder(network: Network) -> None:
    """Each position sees all others. Scores are not scaled."""
    network.tokens = network.source("tokens", DatumType.I64, (network.batch, network.count))
    places = network.numbers(0, network.count)
    biases = _biases(network, places, places, both_ways=True)
    x = network.embedded()
    for layer, bias in zip(layers(network), biases, strict=False):
        q, k, v = layer.projected(layer.rms_norm(x, "attn_norm"))
        keys, values = (by_heads(one, network.heads).outlet for one in (k, v))
        mixed = looked_at(layer, q, keys, values, scale=1.0, bias=bias)
        x = layer.linear(mixed, "attn_o", network.width) + x
        x = _unit(layer, layer.rms_norm(x, "ffn_norm")) + x
    finish_encoder(network, network.rms_norm(x, "output_norm"))


@builds(ROWS, "t5.decoder")
def decoder(network: Network) -> None:
    """Each position sees those before it, and all that the encoder made. Logits by the matrix of tokens are scaled."""
    columns = network.numbers(0, network.length)
    biases = _biases(network, network.positions, columns, both_ways=False, mask=network.mask(None))
    x = network.embedded()
    for layer, bias in zip(layers(network), biases, strict=False):
        projected = layer.projected(layer.rms_norm(x, "attn_norm"))
        form = Attention(scale=1.0)
        mixed, keys, values = attended(network, layer.number, projected, None, form, bias=bias.unsqueeze([2]))
        network.keep(keys, values)
        x = layer.linear(mixed, "attn_o", network.width) + x
        q = layer.linear(layer.rms_norm(x, "cross_attn_norm"), "cross_attn_q", network.heads * network.key_size)
        mixed = looked_at(layer, q, *across(network, layer), scale=1.0)
        x = layer.linear(mixed, "cross_attn_o", network.width) + x
        x = _unit(layer, layer.rms_norm(x, "ffn_norm")) + x
    x = network.rms_norm(x, "output_norm")
    if network.flag("scales_logits", default="output.weight" not in network.weights):
        x = x * float(np.float32(network.width**-0.5))
    network.finish(network.logits(x))


def _unit(layer: Layer, x: Wired) -> Wired:
    """A gated unit where there is a gate, else one with what is below 0 cut off, unless the file says otherwise."""
    net, gated = layer.network, layer.network.flag("gated", default=layer.has("ffn_gate"))
    name, size = net.text("activation", "gelu_new" if gated else "relu"), net.positive("feed_forward_length")
    hidden = layer.linear(x, "ffn_up", size)
    if name == "relu" and not gated:
        return layer.linear(hidden.maximum(0), "ffn_down", net.width)
    if name not in _FUNCTIONS:
        raise Unsupported(
            f"units are of the function {name!r:.80}, wanted {', '.join(_FUNCTIONS)}, or relu without gates"
        )
    function = _FUNCTIONS[name]
    made = layer.linear(x, "ffn_gate", size).op(function) * hidden if gated else hidden.op(function)
    return layer.linear(made, "ffn_down", net.width)


def _biases(
    network: Network, rows: Wired, columns: Wired, *, both_ways: bool, mask: Wired | None = None
) -> Iterator[Wired]:
    """For each layer, what is added to scores [1,heads,S,T]: by how far keys, at columns, are from queries, at rows.

    A layer without weights for that has what the one before it has. Distances have buckets: near ones each their own,
    far ones share theirs. ``mask``: is added to all of them, [S,T].
    """
    count = network.positive("attention.relative_buckets_count", 32, most=1 << 16)
    farthest = network.positive("attention.relative_farthest", _FARTHEST, most=max(_LARGEST // network.heads, 1))
    numbers = buckets(count, farthest, both_ways=both_ways)
    wire = NodeWiring(network.model, "distances")
    away = Wired(wire, columns.outlet)[None] - Wired(wire, rows.outlet)[:, None]
    places, bias = away.maximum(-farthest).minimum(farthest) + farthest, None
    for layer in layers(network):
        if bias is None or layer.has("attn_rel_b"):
            held = network.weights.array(layer.name("attn_rel_b.weight"), (count, network.heads))
            of_distances = places.operand(np.ascontiguousarray(held[numbers]))  # 2 * farthest + 1, heads
            bias = of_distances.op(Gather(0), places).transpose((2, 0, 1)).unsqueeze([0])
            bias = bias if mask is None else bias + mask[None, None]
        yield bias


def buckets(count: int, farthest: int, *, both_ways: bool) -> Array:
    """The bucket of each distance from ``-farthest`` to ``farthest``, how much later a key is than its query.

    Half of the buckets are for single distances, the others grow by a factor up to ``farthest``. ``both_ways``: half of
    all are for keys that come later, which otherwise count as no distance at all. Computed in f32, as where T5 was
    trained: a distance at the edge of two buckets lies where it lay there.
    """
    distances = np.arange(-farthest, farthest + 1)
    own, later = (count // 2, np.where(distances > 0, count // 2, 0)) if both_ways else (count, 0)
    away = np.abs(distances) if both_ways else np.maximum(-distances, 0)
    single = own // 2
    if single < 1 or farthest <= single:
        raise Unsupported(f"{count} buckets of distances up to {farthest} are not known")
    parts = np.log(np.maximum(away, 1).astype(np.float32) / np.float32(single)) / np.float32(log(farthest / single))
    far = single + (parts * np.float32(own - single)).astype(np.int64)
    return np.where(away < single, away, np.minimum(far, own - 1)) + later
