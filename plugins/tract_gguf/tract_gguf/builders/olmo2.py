"""OLMo 2: norms behind attention and gated units instead of before, and of all heads of queries and keys together."""

from __future__ import annotations

from tract_core.ops.elementwise import Silu
from tract_core.plugins.tables import Rows
from tract_gguf.builders.layer import layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()


@builds(ROWS, "olmo2")
def olmo2(network: Network) -> None:
    """Halves turn."""
    rotary = network.rotary(neighbours=False)
    x = network.embedded()
    for layer in layers(network):
        x = layer.rms_norm(layer.attention(x, rotary), "post_attention_norm") + x
        x = layer.rms_norm(layer.gated_unit(x, Silu()), "post_ffw_norm") + x
    network.finish(network.logits(network.rms_norm(x, "output_norm")))
