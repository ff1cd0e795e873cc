"""What users hold: ``tract.nnef().load("model.nnef.tgz")``."""

from __future__ import annotations

import os
from typing import Any, Self, cast

from tract_core.api.loading import Loader
from tract_core.api.model import Model
from tract_core.plugins import Registry
from tract_nnef.registry import CORE
from tract_nnef.writing.saver import USUAL


class Nnef:
    """Loads and writes archives."""

    def __init__(self, registry: Registry | None = None) -> None:
        """``registry``: the plugins to ask, those that are installed by default."""
        self._loader = Loader("nnef", registry)
        self._registries = set(USUAL)
        self._extended = False

    def load(self, path: str | os.PathLike[str], **options: Any) -> Model:
        """The model of a folder, a ``.tar`` or a ``.tgz``, in normal form. Raises ModelError, with the file's name."""
        return cast("Model", self._loader.load(path, **options))

    def load_bytes(self, content: bytes, **options: Any) -> Model:
        """The model in the content of a ``.tar`` or a ``.tgz``. Raises ModelError."""
        return cast("Model", self._loader.load_bytes(content, **options))

    def without_tract_core(self) -> Self:
        """Write nothing but operators of the standard from now on."""
        self._registries.discard(CORE)
        return self

    def __repr__(self) -> str:
        return repr(self._loader)
