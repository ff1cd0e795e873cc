"""Whisper (Radford et al., arXiv:2212.04356): the spectrum of sound to text."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.op import TypedOp
from tract_core.ops.conv import Conv
from tract_core.ops.elementwise import GeluApproximate, GeluExact
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_gguf.builders.attention import Attention, attended
from tract_gguf.builders.halves import across, by_heads, finish_encoder, looked_at
from tract_gguf.builders.layer import layers
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import builds

ROWS = Rows()

_STRIDE: Final = 2
"""Frames for each position of the encoder."""

_FUNCTIONS: Final[dict[str, TypedOp]] = {"gelu": GeluExact(), "gelu_new": GeluApproximate()}


@builds(ROWS, "whisper.encoder")
def encoder(network: Network) -> None:
    """Two convolutions, the second of every other frame; then layers in which each position sees all others.

    The input is ``features``, B,bands,frames: as many frames as there are positions, twice.
    """
    bands, places = network.positive("mel_bands", most=1 << 12), network.context_length
    x = network.source("features", DatumType.F32, (network.batch, bands, _STRIDE * places))
    function = _function(network)
    x = _convolved(network, x, "conv1", 1).op(function)
    x = _convolved(network, x, "conv2", _STRIDE).op(function).transpose((0, 2, 1))
    rows = network.weights.matrix("position_embd.weight", places, network.width)
    x = x + x.with_outlet(rows)[None]
    for layer in layers(network):
        q, k, v = layer.projected(layer.layer_norm(x, "attn_norm"))
        keys, values = (by_heads(one, network.heads).outlet for one in (k, v))
        mixed = looked_at(layer, q, keys, values, scale=network.key_size**-0.5)
        x = layer.linear(mixed, "attn_o", network.width) + x
        x = layer.plain_unit(layer.layer_norm(x, "ffn_norm"), function) + x
    finish_encoder(network, network.layer_norm(x, "output_norm"))


@builds(ROWS, "whisper.decoder")
def decoder(network: Network) -> None:
    """Positions have rows of a matrix; each sees those before it, and all that the encoder made."""
    rows = network.weights.matrix("position_embd.weight", network.context_length, network.width)
    places = network.positions.with_outlet(rows).op(Gather(0), network.positions)
    x = network.embedded(network.number("embedding_scale", 1.0)) + places[None]
    function = _function(network)
    for layer in layers(network):
        projected = layer.projected(layer.layer_norm(x, "attn_norm"))
        mixed, keys, values = attended(network, layer.number, projected, None, Attention())
        network.keep(keys, values)
        x = layer.linear(mixed, "attn_o", network.width) + x
        q = layer.linear(layer.layer_norm(x, "cross_attn_norm"), "cross_attn_q", network.heads * network.key_size)
        mixed = looked_at(layer, q, *across(network, layer), scale=network.key_size**-0.5)
        x = layer.linear(mixed, "cross_attn_o", network.width) + x
        x = layer.plain_unit(layer.layer_norm(x, "ffn_norm"), function) + x
    network.finish(network.logits(network.layer_norm(x, "output_norm")))


def _function(network: Network) -> TypedOp:
    name = network.text("activation", "gelu")
    if name not in _FUNCTIONS:
        raise Unsupported(f"units are of the function {name!r:.80}, wanted {' or '.join(_FUNCTIONS)}")
    return _FUNCTIONS[name]


def _convolved(network: Network, x: Wired, name: str, stride: int) -> Wired:
    """A convolution with a window of three frames, padded so that frames stay in their places."""
    width, channels = network.width, x.shape[1]
    assert isinstance(channels, int)  # sizes of networks are numbers
    wire = NodeWiring(network.model, name)
    kernel = wire.const(network.weights.array(f"{name}.weight", (width, channels, 3)))
    bias = network.weights.vector(f"{name}.bias", width)
    pool = PoolSpec(DataFormat.NCHW, (3,), Explicit((1,), (1,)), strides=(stride,))
    return Wired(wire, wire.op(Conv(pool), x.outlet, kernel, bias))
