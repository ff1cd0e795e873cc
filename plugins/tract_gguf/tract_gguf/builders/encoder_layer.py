"""Layers of encoders, and the parts that they are made of: each token sees all of its text."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_gguf.builders.layer import Layer
from tract_gguf.builders.rotary import Rotary
from tract_gguf.builders.text_encoder import TextEncoder


def encoder_layers(encoder: TextEncoder) -> Iterator[EncoderLayer]:
    """The layers of an encoder, from the first one on."""
    for number in range(encoder.layers):
        yield EncoderLayer(encoder, number)


class EncoderLayer(Layer):
    """A layer of an encoder."""

    def __init__(self, encoder: TextEncoder, number: int) -> None:
        super().__init__(encoder, number)
        self.encoder = encoder

    def looked(
        self, x: Wired, rotary: Rotary | None = None, window: int | None = None, bias: Wired | None = None
    ) -> Wired:
        """What tokens take from all others [B,S,width]. ``window``: how far they see at most, to both sides.

        ``bias``: what is added to scores [1,heads,S,S].
        """
        net, wire = self.encoder, NodeWiring(self.encoder.model, self.name("attn"))
        shape = (net.batch, net.count, net.heads)
        q, k, v = (Wired(wire, one.outlet).reshape((*shape, net.key_size)) for one in self.projected(x))
        if rotary is not None:
            q, k = (rotary.turned(one[:, :, :, None]).squeeze([3]) for one in (q, k))
        scores = _product("bshd,bthd->bhst", q, k) * (1 / sqrt(net.key_size)) + net.seen(window)
        if bias is not None:
            scores += bias
        mixed = _product("bhst,bthd->bshd", scores.op(Softmax((3,))), v)
        return self.linear(mixed.reshape((*shape[:2], net.heads * net.key_size)), "attn_output", net.width)

    def unit(self, x: Wired, function: str) -> Wired:
        """``function(x up) down``, with a gate where there is one: ``(function(x gate) * x up) down``.

        Gates and what they let through may be one matrix. ``function``: of units, where the file names none.
        """
        net = self.encoder
        size = net.positive("feed_forward_length")
        up = self.linear(x, "ffn_up", net.rows_of(self.name("ffn_up")))
        if self.has("ffn_gate"):
            made = net.activated(self.linear(x, "ffn_gate", size), "activation", function) * up
        elif up.shape[-1] == 2 * size:
            made = net.activated(up[..., :size], "activation", function) * up[..., size:]
        else:
            made = net.activated(up, "activation", function)
        return self.linear(made, "ffn_down", net.width)


def _product(expression: str, a: Wired, b: Wired) -> Wired:
    return a.op(EinSum(AxesMapping.parse(expression), DatumType.F32), b)
