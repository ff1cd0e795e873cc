"""The family of Llama, whose form many others have: Mistral, SmolLM, Yi, InternLM, Granite; with experts Mixtral."""

from __future__ import annotations

from tract_core.ops.elementwise import Silu
from tract_core.plugins.tables import Rows
from tract_gguf.builders import experts
from tract_gguf.builders.attention import Attention
from tract_gguf.builders.layer import layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()


@builds(ROWS, "llama", "internlm2", "xverse")
def llama(network: Network) -> None:
    """Norms before attention and gated units; files have the rows of queries and keys so that neighbours turn."""
    wire_llama(network, neighbours=True)


@builds(ROWS, "qwen2", "qwen3", "exaone", "llama-halves")
def qwen(network: Network) -> None:
    """Halves turn. Biases of queries and keys, and norms of heads, are seen from the file.

    ``llama-halves`` is Llama as folders of Hugging Face have it.
    """
    wire_llama(network, neighbours=False)


@builds(ROWS, "qwen2moe", "olmoe")
def plain_experts(network: Network) -> None:
    """Shares of experts stay as the softmax over all of them has them."""
    wire_llama(network, neighbours=False, normed=False)


@builds(ROWS, "qwen3moe")
def normed_experts(network: Network) -> None:
    """Shares of those that were chosen sum up to 1."""
    wire_llama(network, neighbours=False)


@builds(ROWS, "smollm3")
def smollm3(network: Network) -> None:
    """In each fourth layer nothing turns."""
    wire_llama(network, neighbours=True, still=4)


@builds(ROWS, "smollm3-halves")
def smollm3_halves(network: Network) -> None:
    """As folders of Hugging Face have it."""
    wire_llama(network, neighbours=False, still=4)


@builds(ROWS, "granite", "granitemoe")
def granite(network: Network) -> None:
    """Embeddings, scores, what layers add, and logits are scaled by numbers of the file."""
    wire_granite(network, neighbours=True)


@builds(ROWS, "granite-halves", "granitemoe-halves")
def granite_halves(network: Network) -> None:
    """As folders of Hugging Face have it."""
    wire_granite(network, neighbours=False)


def wire_llama(network: Network, *, neighbours: bool, still: int = 0, normed: bool = True) -> None:
    """``still``: nothing turns in each layer of which the number, from 1 on, is a multiple of it; 0 for none.

    ``normed``: of experts, as of `experts.mixture`; Mixtral is Llama with such.
    """
    rotary = network.rotary(neighbours=neighbours)
    form = Attention(window=network.integer("attention.sliding_window", 0) or None)
    x = network.embedded()
    for layer in layers(network):
        turns = not still or (layer.number + 1) % still
        x = layer.attention(layer.rms_norm(x, "attn_norm"), rotary if turns else None, form) + x
        x = experts.unit(layer, layer.rms_norm(x, "ffn_norm"), Silu(), normed=normed) + x
    network.finish(network.logits(network.rms_norm(x, "output_norm")))


def wire_granite(network: Network, *, neighbours: bool) -> None:
    """Llama with four scales."""
    rotary, form = (
        network.rotary(neighbours=neighbours),
        Attention(scale=network.number("attention.scale", 0.0) or None),
    )
    scale = network.number("residual_scale", 1.0)
    x = network.embedded(network.number("embedding_scale", 1.0))
    for layer in layers(network):
        x = layer.attention(layer.rms_norm(x, "attn_norm"), rotary, form) * scale + x
        x = experts.unit(layer, layer.rms_norm(x, "ffn_norm"), Silu(), normed=True) * scale + x
    logits = network.logits(network.rms_norm(x, "output_norm"))
    network.finish(logits * (1 / network.divisor("logit_scale")))
