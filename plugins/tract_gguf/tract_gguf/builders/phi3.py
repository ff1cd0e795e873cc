"""Phi-3 and Phi-4: as Llama, with one matrix for queries, keys and values, and one for both factors of gated units."""

from __future__ import annotations

from tract_core.ops.elementwise import Silu
from tract_core.plugins.tables import Rows
from tract_gguf.builders.attention import Attention
from tract_gguf.builders.layer import layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()


@builds(ROWS, "phi3")
def phi3(network: Network) -> None:
    """Positions see a window where the file has one."""
    rotary = network.rotary(neighbours=False)
    form = Attention(window=network.integer("attention.sliding_window", 0) or None)
    x = network.embedded()
    for layer in layers(network):
        x = layer.attention(layer.rms_norm(x, "attn_norm"), rotary, form) + x
        x = layer.gated_unit(layer.rms_norm(x, "ffn_norm"), Silu()) + x
    network.finish(network.logits(network.rms_norm(x, "output_norm")))
