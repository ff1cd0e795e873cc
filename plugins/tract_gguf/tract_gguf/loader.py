"""The readers of the formats: a file, or a folder, becomes a `TypedModel`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Final

from tract_core.errors import TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending
from tract_core.model.typed import TypedModel
from tract_core.plugins import Registry, default_registry
from tract_gguf.builders.halves import DECODER, ENCODER, Encoder, half_of, has_decoder
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import GGUF, GGUF_ENCODERS
from tract_gguf.builders.text_encoder import TextEncoder
from tract_gguf.folders.folder import read_folder
from tract_gguf.reading.file import GgufFile, read_file


class GgufLoader:
    """Loads files of GGUF. ``warns``: whether there is ever anything to warn of, besides errors."""

    warns: ClassVar[bool] = False

    def __init__(self, *, limits: LoadLimits = DEFAULT_LIMITS, registry: Registry | None = None) -> None:
        """``limits``: what a file may ask for. ``registry``: the plugins to ask, by default those installed."""
        self._limits = limits
        self._registry = registry

    def load(self, path: Path) -> TypedModel:
        """The model of a file, as of `build_model`. Raises ModelError, with the path."""
        with spending(self._limits):
            file = read_file(path, self._limits)
            try:
                return self._build(file)
            except TractError as error:
                raise error.at(str(path)) from error.__cause__

    def load_bytes(self, content: bytes) -> TypedModel:
        """The model in the content of a file. Raises ModelError."""
        with spending(self._limits):
            return self._build(read_file(content, self._limits))

    def _build(self, file: GgufFile) -> TypedModel:
        return build_model(file, registry=self._registry or default_registry(), limits=self._limits)


class FolderLoader:
    """Loads folders of Hugging Face: ``config.json`` beside ``model.safetensors``, or beside several and an index."""

    def __init__(self, *, limits: LoadLimits = DEFAULT_LIMITS, registry: Registry | None = None) -> None:
        """``limits``: what a folder may ask for. ``registry``: the plugins to ask, by default those installed."""
        self._limits = limits
        self._registry = registry

    def load(self, path: Path) -> TypedModel:
        """The model of a folder, as of `build_model`. Raises ModelError, with the path."""
        with spending(self._limits):
            file = read_folder(path if path.is_dir() else path.parent, self._limits)
            try:
                return build_model(file, registry=self._registry or default_registry(), limits=self._limits)
            except TractError as error:
                raise error.at(str(path)) from error.__cause__


def build_model(file: GgufFile, *, registry: Registry, limits: LoadLimits = DEFAULT_LIMITS) -> TypedModel:
    """The model of what a file holds.

    Its inputs are ``tokens`` [B,S] in i64, and for each layer the past, ``past.N.key`` and ``past.N.value``, of
    [B, heads of keys, P, size of a head] in f32. Its outputs are ``logits`` [B,S,V] in f32, and for each layer
    ``present.N.key`` and ``present.N.value``: the past with the S new positions behind it. Keys are kept after their
    rotary embedding. The token at ``s`` has the position P + s. An encoder alone is as of `build_halves`.

    The inputs of an encoder of texts are ``tokens``, ``mask`` and, of networks that know types, ``types`` [B,S] in i64;
    its outputs are ``hidden`` [B,S,width] in f32, and ``scores`` [B,L] where it has a head. Raises ModelError.
    """
    name = _ALONE.get(file.architecture, file.architecture)
    if not _is_in_halves(name, registry):
        return _built(file, registry, limits)
    if has_decoder(file):
        hint = "tract_gguf.load_halves gives both, and tract_transformers.load what writes with them"
        raise Unsupported("the file holds an encoder and a decoder, which are two models", hint=hint)
    return _built(half_of(file, "encoder", name), registry, limits)


_ALONE: Final = {"t5encoder": "t5"}
"""What files call an architecture of which they have the encoder alone."""


def _is_in_halves(architecture: str, registry: Registry) -> bool:
    """Whether networks of an architecture have an encoder and a decoder."""
    return all(registry[GGUF].find(architecture + half) is not None for half in (ENCODER, DECODER))


@frozen
class Halves:
    """The encoder and the decoder of a network, as of `build_halves`."""

    encoder: TypedModel
    decoder: TypedModel


def build_halves(file: GgufFile, *, registry: Registry, limits: LoadLimits = DEFAULT_LIMITS) -> Halves:
    """The encoder and the decoder of what a file holds.

    The input of the encoder is ``tokens`` [B,S] in i64, or ``features`` [B,bands,frames] in f32. Its outputs are
    ``encoded`` [B,S,width], and for each layer of the decoder ``cross.N.key`` and ``cross.N.value``, of [B, heads, S,
    size of a head] in f32. These are inputs of the decoder, beside those of `build_model`, whose outputs it has; the
    length of what was encoded is L there. Raises ModelError, Unsupported for a network that has no such halves.
    """
    name = file.architecture
    if not _is_in_halves(name, registry):
        raise Unsupported(f"a network of the architecture {name!r:.80} has no encoder with a decoder")
    if not has_decoder(file):
        raise Unsupported("the file holds an encoder alone", hint="tract_core.load gives it")
    encoder, decoder = (_built(half_of(file, half, name), registry, limits) for half in ("encoder", "decoder"))
    return Halves(encoder, decoder)


def _built(file: GgufFile, registry: Registry, limits: LoadLimits) -> TypedModel:
    model = TypedModel(registry=registry)
    model.limits = limits
    architecture = file.architecture
    encodes: Any = registry[GGUF_ENCODERS].find(architecture)
    builder: Any = encodes or registry[GGUF].find(architecture)
    if builder is None:
        names = {name.partition(".")[0] for name in registry[GGUF].names()} | {*registry[GGUF_ENCODERS].names()}
        known = ", ".join(sorted(names))
        raise Unsupported(
            f"the file holds a network of the architecture {architecture!r:.80}; known are {known}",
            hint="a plugin can add a row of the table 'gguf': see docs/gguf.md",
        )
    half = Encoder if architecture.endswith(ENCODER) else Network
    network = (half if encodes is None else TextEncoder)(file, model)
    builder(network)
    network.check_all_was_read()
    return model
