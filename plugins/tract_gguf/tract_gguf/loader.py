"""The readers of the formats: a file, or a folder, becomes a `TypedModel`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tract_core.errors import TractError, Unsupported
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending
from tract_core.model.typed import TypedModel
from tract_core.plugins import Registry, default_registry
from tract_gguf.builders.network import Network
from tract_gguf.builders.table import GGUF
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
    rotary embedding. The token at ``s`` has the position P + s. Raises ModelError.
    """
    model = TypedModel(registry=registry)
    model.limits = limits
    architecture = file.architecture
    builder: Any = registry[GGUF].find(architecture)
    if builder is None:
        known = ", ".join(sorted(registry[GGUF].names()))
        raise Unsupported(
            f"the file holds a network of the architecture {architecture!r:.80}; known are {known}",
            hint="a plugin can add a row of the table 'gguf': see docs/gguf.md",
        )
    network = Network(file, model)
    builder(network)
    network.check_all_was_read()
    return model
