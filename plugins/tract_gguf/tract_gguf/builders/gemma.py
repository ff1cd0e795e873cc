"""The family of Gemma: scaled embeddings, GELU in gated units, and from the second on more norms in each layer.

Scales of norms are one more than in training, which files have already added.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from tract_core.ops.elementwise import GeluApproximate
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_gguf.builders.attention import Attention
from tract_gguf.builders.layer import Layer, layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.rotary import Rotary
from tract_gguf.builders.table import builds

ROWS = Rows()

Attend = Callable[[Layer], tuple[Rotary, Attention]]
"""How a layer attends."""


@builds(ROWS, "gemma")
def gemma(network: Network) -> None:
    """The first one, without norms behind."""
    alike = network.rotary(neighbours=False), Attention()

    def attend(_: Layer) -> tuple[Rotary, Attention]:
        return alike

    _finish(network, _layers(network, attend))


@builds(ROWS, "gemma2")
def gemma2(network: Network) -> None:
    """Every other layer sees a window, from the first one on; scores and logits are capped."""
    rotary, cap = network.rotary(neighbours=False), network.number("attn_logit_softcapping", 50.0)
    window, scale = network.positive("attention.sliding_window", 4096), _scale(network, layers_of_27b=46)
    forms = Attention(window=window, scale=scale, cap=cap), Attention(scale=scale, cap=cap)
    x = _layers(network, lambda layer: (rotary, forms[layer.number % 2]))
    _finish(network, x, network.number("final_logit_softcapping", 30.0))


@builds(ROWS, "gemma3")
def gemma3(network: Network) -> None:
    """Five of six layers see a window, and turn by angles of their own, which are not scaled."""
    far = network.rotary(neighbours=False)
    near = network.rotary(neighbours=False, base=network.number("rope.freq_base_swa", 10000.0), scaled=False)
    window, scale = network.integer("attention.sliding_window", 0) or None, _scale(network, layers_of_27b=62)
    of_near, of_far = Attention(window=window, scale=scale), Attention(scale=scale)
    every = network.positive("attention.sliding_window_pattern", 6)

    def attend(layer: Layer) -> tuple[Rotary, Attention]:
        return (far, of_far) if layer.number % every == every - 1 else (near, of_near)

    cap = network.number("final_logit_softcapping", 0.0)
    _finish(network, _layers(network, attend), cap or None)


def _scale(network: Network, layers_of_27b: int) -> float | None:
    """Of scores: the largest network of a generation has one of its own, which files do not hold."""
    said = network.number("attention.scale", 0.0)
    return said or (sqrt(network.heads / network.width) if network.layers == layers_of_27b else None)


def _layers(network: Network, attend: Attend) -> Wired:
    x = network.embedded(sqrt(network.width))
    for layer in layers(network):
        mixed = layer.attention(layer.rms_norm(x, "attn_norm"), *attend(layer))
        x = _normed(layer, mixed, "post_attention_norm") + x
        unit = layer.gated_unit(layer.rms_norm(x, "ffn_norm"), GeluApproximate())
        x = _normed(layer, unit, "post_ffw_norm") + x
    return x


def _normed(layer: Layer, x: Wired, name: str) -> Wired:
    return layer.rms_norm(x, name) if layer.has(name) else x


def _finish(network: Network, x: Wired, cap: float | None = None) -> None:
    logits = network.logits(network.rms_norm(x, "output_norm"))
    network.finish(logits if cap is None else (logits * (1 / cap)).tanh() * cap)
