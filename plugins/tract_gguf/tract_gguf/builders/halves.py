"""Networks of an encoder and a decoder, a model each, that are read as if each half were a file of its own.

The encoder looks at a whole text, or at sound, and gives the keys and values that each layer of the decoder looks at
across; the decoder is given these in each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.ops.einsum import EinSum
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_gguf.builders.layer import Layer
from tract_gguf.builders.network import Network
from tract_gguf.reading.file import GgufFile
from tract_gguf.reading.metadata import Value
from tract_gguf.reading.quantised import QuantisedTensor
from tract_gguf.reading.tensors import GgufTensor

Half = Literal["encoder", "decoder"]

ENCODER: Final = ".encoder"
DECODER: Final = ".decoder"
"""How the names of architectures end that are half a network."""

_TENSORS: Final[Mapping[Half, str]] = {"encoder": "enc.", "decoder": "dec."}
"""With what the names of tensors begin that one half alone has."""

_ACROSS: Final = ("cross_attn_k", "cross_attn_v")
"""Weights of the decoder that meet what the encoder made."""

_UNUSED: Final = "cross_attn_rel_b"
"""What old files of T5 have, and nothing reads."""


def half_of(file: GgufFile, half: Half, architecture: str) -> GgufFile:
    """One half of what a file holds, as a file of a network of its own, ``architecture.half``.

    What the file says of one half, as ``t5.decoder.block_count`` or ``t5.decoder_block_count``, stands there without
    its name. An encoder is told of the layers that look at it: ``across.block_count``, ``across.attention.head_count``.
    """
    said = _said(file, half)
    if half == "encoder" and has_decoder(file):
        said |= {f"across.{key}": value for key, value in _said(file, "decoder").items()}
    name = f"{architecture}.{half}"
    metadata: dict[str, Value] = {"general.architecture": name} | {
        f"{name}.{key}": value for key, value in said.items()
    }
    tensors: dict[str, GgufTensor | QuantisedTensor] = {}
    for called, tensor in file.tensors.items():
        found = _name_in_half(called, half)
        if found is not None:
            tensors[found] = tensor
    return GgufFile(file.version, file.alignment, MappingProxyType(metadata), MappingProxyType(tensors))


def has_decoder(file: GgufFile) -> bool:
    """Whether a file of halves has more than the encoder."""
    return any(name.startswith(_TENSORS["decoder"]) for name in file.tensors)


def _said(file: GgufFile, half: Half) -> dict[str, Value]:
    start = f"{file.architecture}."
    every = {key.removeprefix(start): value for key, value in file.metadata.items() if key.startswith(start)}
    own = {key[len(half) + 1 :]: value for key, value in every.items() if key.startswith((f"{half}.", f"{half}_"))}
    common = {key: value for key, value in every.items() if not key.startswith(("encoder", "decoder"))}
    return common | own


def _name_in_half(name: str, half: Half) -> str | None:
    """What a tensor is called in one half; ``None`` where that does not have it."""
    across = name.startswith(_TENSORS["decoder"]) and any(f".{part}." in name for part in _ACROSS)
    if across:
        return name if half == "encoder" else None
    if name.startswith(_TENSORS[half]):
        return None if _UNUSED in name else name.removeprefix(_TENSORS[half])
    of_other = name.startswith(tuple(_TENSORS.values())) or (half == "encoder" and name.startswith("output."))
    return None if of_other else name


class Encoder(Network):
    """An encoder, which has no past; its builder takes the inputs, of ``count`` positions."""

    def _take_inputs(self) -> None:
        """None: builders do it."""

    def _vocabulary(self) -> int:
        return super()._vocabulary() if "token_embd.weight" in self.weights else 0


def looked_at(
    layer: Layer, queries: Wired, keys: OutletId, values: OutletId, *, scale: float, bias: Wired | None = None
) -> Wired:
    """What positions mix of values that all of them see, [B,S,heads * size].

    ``queries``: [B,S,heads * size]; ``keys``, ``values``: [B,heads,T,size]; ``bias``: what is added to scores
    [1,heads,S,T].
    """
    wire = NodeWiring(layer.network.model, layer.name("looked"))
    k, v = Wired(wire, keys), Wired(wire, values)
    batch, count, whole = queries.shape
    heads, size = k.shape[1], k.shape[3]
    q = Wired(wire, queries.outlet).reshape((batch, count, heads, size))
    scores = q.op(EinSum(AxesMapping.parse("bshd,bhtd->bhst"), DatumType.F32), k)
    if scale != 1:
        scores = scores * scale
    if bias is not None:
        scores += bias
    mixed = scores.op(Softmax((3,))).op(EinSum(AxesMapping.parse("bhst,bhtd->bshd"), DatumType.F32), v)
    return mixed.reshape((batch, count, whole))


def by_heads(x: Wired, heads: int) -> Wired:
    """``x`` [B,S,heads * size] as keys and values lie, [B,heads,S,size]."""
    batch, count, whole = x.shape
    return x.reshape((batch, count, heads, whole // heads)).transpose((0, 2, 1, 3))


def across(network: Network, layer: Layer) -> tuple[OutletId, OutletId]:
    """The inputs of a decoder with what a layer looks at across: keys and values [B,heads,L,size]."""
    shape = (network.batch, network.heads, network.model.symbols.add("L"), network.key_size)
    key, value = (
        network.source(f"cross.{layer.number}.{part}", DatumType.F32, shape).outlet for part in ("key", "value")
    )
    return key, value


def finish_encoder(network: Network, encoded: Wired) -> None:
    """The outputs of an encoder: what it made [B,S,width], and keys and values of it for each layer of the decoder."""
    outlets, names = [encoded.outlet], ["encoded"]
    layers = network.positive("across.block_count", most=1 << 16) if "across.block_count" in network else 0
    for number in range(layers):
        heads = network.positive("across.attention.head_count")
        rows = heads * network.positive("across.attention.key_length", network.width // heads)
        for part, name in zip(("key", "value"), _ACROSS, strict=True):
            made = network.weights.linear(encoded, f"dec.blk.{number}.{name}", rows)
            outlets.append(by_heads(made, heads).outlet)
            names.append(f"cross.{number}.{part}")
    network.model.set_outputs(outlets)
    network.model.outlet_labels.update(zip(network.model.outputs, names, strict=True))
