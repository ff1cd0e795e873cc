"""GPT-2: positions have rows of a matrix, and units no gate."""

from __future__ import annotations

from tract_core.ops.elementwise import GeluApproximate
from tract_core.ops.gather import Gather
from tract_core.plugins.tables import Rows
from tract_gguf.builders.layer import layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()


@builds(ROWS, "gpt2")
def gpt2(network: Network) -> None:
    """Layer norms with biases, attention without groups, and GELU by its approximation."""
    rows = network.weights.matrix("position_embd.weight", network.context_length, network.width)
    places = network.positions.with_outlet(rows).op(Gather(0), network.positions)
    x = network.embedded() + places[None]
    for layer in layers(network):
        x = layer.attention(layer.layer_norm(x, "attn_norm"), None) + x
        x = layer.plain_unit(layer.layer_norm(x, "ffn_norm"), GeluApproximate()) + x
    network.finish(network.logits(network.layer_norm(x, "output_norm")))
