"""BERT and its relatives: RoBERTa and XLM-RoBERTa, which differ in their tokens; MPNet; Nomic BERT; ModernBERT."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_gguf.builders.encoder_layer import encoder_layers
from tract_gguf.builders.rotary import Rotary
from tract_gguf.builders.t5 import buckets
from tract_gguf.builders.table import encodes
from tract_gguf.builders.text_encoder import MEAN, TextEncoder

ROWS = Rows()

_DISTANCES: Final = "blk.0.attn_rel_b.weight"
"""Called as in files of T5; there are none of MPNet."""

_BUCKETS: Final = 32
_FARTHEST: Final = 128
"""Of distances of MPNet, whatever its configuration says."""

_BASE_OF_NEAR: Final = 10000.0
"""Of the angles in layers of ModernBERT whose tokens see a window, where the file does not say it."""


@encodes(ROWS, "bert")
def bert(encoder: TextEncoder) -> None:
    """Positions have rows of a matrix; norms stand behind attention and units. MPNet has scores of distances, too."""
    _wire(encoder, None, "gelu", _of_distances(encoder) if _DISTANCES in encoder.weights else None)


@encodes(ROWS, "nomic-bert")
def nomic_bert(encoder: TextEncoder) -> None:
    """Halves turn, and units have a gate."""
    _wire(encoder, encoder.rotary(neighbours=False), "silu")


def _wire(encoder: TextEncoder, rotary: Rotary | None, function: str, bias: Wired | None = None) -> None:
    x = encoder.summed()
    for layer in encoder_layers(encoder):
        x = layer.layer_norm(layer.looked(x, rotary, bias=bias) + x, "attn_output_norm")
        x = layer.layer_norm(layer.unit(x, function) + x, "layer_output_norm")
    encoder.finish_encoder(x)


def _of_distances(encoder: TextEncoder) -> Wired:
    """What is added to scores [1,heads,S,S], by how far a key is from its query: in all layers the same, as of T5."""
    held = encoder.weights.array(_DISTANCES, (_BUCKETS, encoder.heads))
    wire = NodeWiring(encoder.model, "distances")
    rows = np.ascontiguousarray(held[buckets(_BUCKETS, _FARTHEST, both_ways=True)])  # [2 * farthest + 1, heads]
    places = Wired(wire, encoder.positions.outlet)
    away = (places[None] - places[:, None]).maximum(-_FARTHEST).minimum(_FARTHEST) + _FARTHEST
    return Wired(wire, wire.const(rows)).op(Gather(0), away).transpose((2, 0, 1)).unsqueeze([0])


@encodes(ROWS, "modern-bert")
def modern_bert(encoder: TextEncoder) -> None:
    """Norms before attention, but in the first layer, and before gated units. Most layers see a window.

    Windows are half as far to each side as the file says, and turn by angles of their own.
    """
    every = encoder.positive("attention.sliding_window_pattern", 3)
    half = encoder.positive("attention.sliding_window", 128) // 2
    far = encoder.rotary(neighbours=False)
    near = encoder.rotary(neighbours=False, base=encoder.number("rope.freq_base_swa", _BASE_OF_NEAR))
    x = encoder.summed()
    for layer in encoder_layers(encoder):
        normed = layer.layer_norm(x, "attn_norm") if layer.has("attn_norm") else x
        x = layer.looked(normed, *((near, half) if layer.number % every else (far, None))) + x
        x = layer.unit(layer.layer_norm(x, "ffn_norm"), "gelu") + x
    encoder.finish_encoder(encoder.layer_norm(x, "output_norm"), function="gelu", pooled=MEAN)
