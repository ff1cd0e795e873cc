"""GPT-NeoX and others with layer norms: Pythia, Phi-1 and 2, StarCoder 2, and StableLM, whose units have a gate."""

from __future__ import annotations

from tract_core.model.op import TypedOp
from tract_core.ops.elementwise import GeluApproximate, GeluExact, Silu
from tract_core.plugins.tables import Rows
from tract_gguf.builders.attention import Attention
from tract_gguf.builders.layer import layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()


@builds(ROWS, "gptneox")
def gptneox(network: Network) -> None:
    """Attention and units read the same, where the file says so; then both are added."""
    _wire(network, GeluExact(), at_once=network.flag("use_parallel_residual", default=True))


@builds(ROWS, "starcoder2")
def starcoder2(network: Network) -> None:
    """Units read what attention has added to; positions see a window where the file has one."""
    _wire(network, GeluApproximate())


@builds(ROWS, "stablelm")
def stablelm(network: Network) -> None:
    """Units have a gate."""
    _wire(network, Silu(), gated=True)


@builds(ROWS, "phi2")
def phi2(network: Network) -> None:
    """Attention and units read the same norm."""
    rotary, x = network.rotary(neighbours=False), network.embedded()
    for layer in layers(network):
        normed = layer.layer_norm(x, "attn_norm")
        x = layer.attention(normed, rotary) + layer.plain_unit(normed, GeluApproximate()) + x
    network.finish(network.logits(network.layer_norm(x, "output_norm")))


def _wire(network: Network, function: TypedOp, *, at_once: bool = False, gated: bool = False) -> None:
    """``at_once``: whether units read what attention reads, before it has added to it."""
    rotary, x = network.rotary(neighbours=False), network.embedded()
    form = Attention(window=network.integer("attention.sliding_window", 0) or None)
    for layer in layers(network):
        with_attention = layer.attention(layer.layer_norm(x, "attn_norm"), rotary, form) + x
        normed = layer.layer_norm(x if at_once else with_attention, "ffn_norm")
        x = (layer.gated_unit if gated else layer.plain_unit)(normed, function) + with_attention
    network.finish(network.logits(network.layer_norm(x, "output_norm")))
