"""gpt-oss: experts with biases, and attention in which each head may look at nothing."""

from __future__ import annotations

from typing import Final

from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_gguf.builders import experts
from tract_gguf.builders.attention import Attention
from tract_gguf.builders.layer import layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()

_STEEPNESS: Final = 1.702
"""Of the sigmoid of gates, where nothing is said of it."""

_LIMIT: Final = 7.0
"""Gates stay below it, and what they let through between it and its negative, where nothing is said of it."""


@builds(ROWS, "gpt-oss")
def gpt_oss(network: Network) -> None:
    """Halves turn. Every other layer sees a window, from the first one on. Files call the second norm that behind."""
    wire_gpt_oss(network, in_pairs=False)


@builds(ROWS, "gpt-oss-in-pairs")
def gpt_oss_in_pairs(network: Network) -> None:
    """As folders of Hugging Face have it."""
    wire_gpt_oss(network, in_pairs=True)


def wire_gpt_oss(network: Network, *, in_pairs: bool) -> None:
    """``in_pairs``: as of `experts.mixture`."""
    rotary = network.rotary(neighbours=False)
    forms = Attention(window=network.positive("attention.sliding_window", 128)), Attention()
    steepness, limit = network.number("swiglu_alpha", _STEEPNESS), network.number("swiglu_limit", _LIMIT)

    def gated(gate: Wired, up: Wired) -> Wired:
        gate, up = gate.minimum(limit), up.minimum(limit).maximum(-limit)
        return gate * (gate * steepness).sigmoid() * (up + 1)

    x = network.embedded()
    for layer in layers(network):
        x = layer.attention(layer.rms_norm(x, "attn_norm"), rotary, forms[layer.number % 2]) + x
        x = experts.mixture(layer, layer.rms_norm(x, "post_attention_norm"), gated, normed=True, in_pairs=in_pairs) + x
    network.finish(network.logits(network.rms_norm(x, "output_norm")))
