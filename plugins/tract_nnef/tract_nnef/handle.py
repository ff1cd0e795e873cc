"""What users hold: ``tract.nnef().load("model.nnef.tgz")``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

from tract_core.api.given import checked_path
from tract_core.api.loading import Loader
from tract_core.api.model import Model
from tract_core.errors import InputError, TractError
from tract_core.plugins import Registry
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing
from tract_nnef.registry import CORE, PY


class Nnef:
    """Loads archives, with the operators of every registry that is installed, and writes them.

    The methods ``with_...`` and ``without_...`` say which registries may be used in what is written from then on, and
    give the object back. ``tract_core`` may be, unless it is taken away.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        """``registry``: the plugins to ask, those that are installed by default."""
        self._loader = Loader("nnef", registry)
        self._how = Writing()

    def load(self, path: str | os.PathLike[str], **options: Any) -> Model:
        """The model of a folder, a ``.tar`` or a ``.tgz``, in normal form. Raises ModelError, with the file's name.

        ``limits``: a `tract_core.limits.LoadLimits`, what the archive may ask for. Weights in a folder and in a
        ``.tar`` are mapped into memory: the files have to stay as they are as long as the model is used.
        """
        return cast("Model", self._loader.load(path, **options))

    def load_bytes(self, content: bytes, **options: Any) -> Model:
        """The model in the content of a ``.tar`` or a ``.tgz``. Raises ModelError."""
        return cast("Model", self._loader.load_bytes(content, **options))

    # --- what may be written ---

    def without_tract_core(self) -> Self:
        """Write nothing but operators of the standard, and of registries that are added."""
        return self._with(self._how.registries - {CORE, PY})

    def without_tract_py(self) -> Self:
        """Write nothing that only this project reads: archives are for the established engine too."""
        return self._with(self._how.registries - {PY})

    def with_tract_core(self) -> Self:
        """Allow what the tract engines have beyond the standard, as is done unasked."""
        return self._added(CORE)

    def with_tract_extra(self) -> Self:
        """Allow the registry ``tract_extra``."""
        return self._added("tract_extra")

    def with_tract_transformers(self) -> Self:
        """Allow the registry ``tract_transformers``: attention, and what belongs to it."""
        return self._added("tract_transformers")

    def with_tract_resource(self) -> Self:
        """Allow the registry ``tract_resource``: files beside the model."""
        return self._added("tract_resource")

    def with_onnx(self) -> Self:
        """Allow the registry ``tract_onnx``: what only ONNX has."""
        return self._added("tract_onnx")

    def with_pulse(self) -> Self:
        """Allow the registry ``tract_pulse``: streams that are taken in pieces."""
        return self._added("tract_pulse")

    def with_registry(self, name: str) -> Self:
        """Allow the registry of a plugin, by its name. Raises InputError for what is no text."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"a registry is named by a text, got {type(name).__name__}")
        return self._added(name)

    def with_extended_identifier_syntax(self) -> Self:
        """Write names that are no identifiers as they are, as ``i"a/b"``, in place of ``a_b``."""
        self._how = replace(self._how, extended=True)
        return self

    def with_compiled(self, targets: str = "native") -> Self:
        """Write machine code of models too, beside them: `tract_cpu.load_compiled` runs it.

        ``targets``: what it is for, as ``tract compile --target`` has it, with commas between several. Sizes have to be
        known then, and every node needs native code: what is written raises Unsupported otherwise.
        """
        if not isinstance(targets, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"targets are named by a text, got {type(targets).__name__}", hint="as 'native'")
        self._how = replace(self._how, compiled=targets)
        return self

    # --- writing ---

    def write_model_to_dir(self, model: Model, path: str | os.PathLike[str]) -> None:
        """Write a folder, whole or not at all. Raises InputError where ``path`` is there already, Unsupported."""
        self._write(model, path, "folder")

    def write_model_to_tar(self, model: Model, path: str | os.PathLike[str]) -> None:
        """Write a tar file, whole or not at all; one that is there is replaced. Raises InputError, Unsupported."""
        self._write(model, path, "tar")

    def write_model_to_tar_gz(self, model: Model, path: str | os.PathLike[str]) -> None:
        """Write a compressed tar file, whole or not at all; one that is there is replaced. Raises as for a tar file."""
        self._write(model, path, "tgz")

    def write_model_to_bytes(self, model: Model) -> bytes:
        """The content of a compressed tar file, as `load_bytes` takes it. Raises Unsupported."""
        return NnefWriter(how=self._how).to_bytes(_checked(model).typed)

    def __repr__(self) -> str:
        return f"{self._loader!r}, which writes {', '.join(sorted(self._how.registries)) or 'the standard alone'}"

    def _added(self, name: str) -> Self:
        return self._with(self._how.registries | {name})

    def _with(self, registries: frozenset[str]) -> Self:
        self._how = replace(self._how, registries=registries)
        return self

    def _write(self, model: Model, path: str | os.PathLike[str], container: str) -> None:
        target: Path = checked_path(path)
        try:
            NnefWriter(container=container, how=self._how).write(_checked(model).typed, target)
        except TractError as error:
            raise error.at(str(target)) from error.__cause__


def _checked(model: Model) -> Model:
    if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"a Model is written, got {type(model).__name__}", hint="an InferenceModel has into_model()")
    return model
