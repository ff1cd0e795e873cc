"""Layers, and the parts that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_core.model.op import TypedOp
from tract_core.ops.wired import Wired
from tract_gguf.builders.attention import Attention, attended
from tract_gguf.builders.network import Network
from tract_gguf.builders.rotary import Rotary


def layers(network: Network) -> Iterator[Layer]:
    """The layers of a network, from the first one on."""
    for number in range(network.layers):
        yield Layer(network, number)


class Layer:
    """A layer of ``network``, of which names of weights begin with ``blk.NUMBER``."""

    def __init__(self, network: Network, number: int) -> None:
        self.network = network
        self.number = number

    def name(self, name: str) -> str:
        """The name of weights of this layer."""
        return f"blk.{self.number}.{name}"

    def has(self, name: str) -> bool:
        """Whether the layer has weights of that name."""
        return f"{self.name(name)}.weight" in self.network.weights

    def rms_norm(self, x: Wired, name: str) -> Wired:
        """As of the network, with weights of this layer."""
        return self.network.rms_norm(x, self.name(name))

    def layer_norm(self, x: Wired, name: str) -> Wired:
        """As of the network, with weights of this layer."""
        return self.network.layer_norm(x, self.name(name))

    def linear(self, x: Wired, name: str, rows: int) -> Wired:
        """A product with weights of this layer, with their bias."""
        return self.network.weights.linear(x, self.name(name), rows)

    def attention(self, x: Wired, rotary: Rotary | None, form: Attention | None = None) -> Wired:
        """What positions take from those before them [B,S,width], by weights of this layer."""
        q, k, v = self.projected(x)
        net = self.network
        if self.has("attn_q_norm"):
            q, k = self._normed(q, net.heads, "attn_q_norm"), self._normed(k, net.key_heads, "attn_k_norm")
        sinks = (
            q.with_outlet(net.weights.vector(self.name("attn_sinks.weight"), net.heads))
            if self.has("attn_sinks")
            else None
        )
        mixed, keys, values = attended(net, self.number, (q, k, v), rotary, form or Attention(), sinks=sinks)
        net.keep(keys, values)
        return self.linear(mixed, "attn_output", net.width)

    def _normed(self, x: Wired, heads: int, name: str) -> Wired:
        """``x`` [B,S,heads * size] over the root mean square of each head; of all, where there are as many weights."""
        net = self.network
        weights = net.weights.sizes(f"{self.name(name)}.weight")
        each = weights == (net.key_size,) and heads > 1
        return self.rms_norm(net.heads_of(x, heads, net.key_size) if each else x, name)

    def projected(self, x: Wired) -> Sequence[Wired]:
        """Queries, keys and values, [B,S,heads * size]; by one product where their weights are one matrix."""
        net = self.network
        sizes = [net.heads * net.key_size, net.key_heads * net.key_size, net.key_heads * net.value_size]
        if not self.has("attn_qkv"):
            names = ("attn_q", "attn_k", "attn_v")
            return [self.linear(x, name, size) for name, size in zip(names, sizes, strict=True)]
        whole = self.linear(x, "attn_qkv", sum(sizes))
        ends = [sum(sizes[: count + 1]) for count in range(3)]
        return [whole[..., end - size : end] for size, end in zip(sizes, ends, strict=True)]

    def gated_unit(self, x: Wired, function: TypedOp) -> Wired:
        """``(function(x gate) * x up) down``, where gate and up may be one matrix."""
        size = self.network.positive("feed_forward_length")
        if self.has("ffn_gate"):
            gate, up = self.linear(x, "ffn_gate", size), self.linear(x, "ffn_up", size)
        else:
            both = self.linear(x, "ffn_up", 2 * size)
            gate, up = both[..., :size], both[..., size:]
        return self.linear(gate.op(function) * up, "ffn_down", self.network.width)

    def plain_unit(self, x: Wired, function: TypedOp) -> Wired:
        """``function(x up) down``"""
        size = self.network.positive("feed_forward_length")
        return self.linear(self.linear(x, "ffn_up", size).op(function), "ffn_down", self.network.width)
