"""Where models come from: files, of which plans are kept, and what `tract_core.api.reading` reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tract_core.api.given import checked_content, checked_path, is_in_memory, source_text
from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.errors import InputError
from tract_core.later import Later
from tract_core.prepared.environment import installed
from tract_core.prepared.recipe import recipe_of_file

if TYPE_CHECKING:
    from tract_core.api.fact import Fact, InferenceFact
    from tract_core.limits import LoadLimits
    from tract_core.model.typed import TypedModel
    from tract_core.plugins import Registry


Source: TypeAlias = "str | os.PathLike[str] | Any"
"""Where a model is: a path, an opened file, or an object of another library."""


class Loader:
    """Loads the files of one format: what ``tract.NAME()`` makes for a format that brings no class of its own."""

    def __init__(self, format_name: str, registry: Registry | None = None) -> None:
        """Raises PluginError when no plugin for the format is installed."""
        self._format_name = format_name
        self._registry = registry
        known = None if registry is not None else installed()
        if known is None or format_name not in known.handles:
            from tract_core.api.reading import loader_of

            loader_of(format_name, registry)

    def load(self, path: Source, **options: Any) -> InferenceModel | Model:
        """The model of a file or folder: in normal form, or an `InferenceModel`, of which more can be said first.

        ``path``: that of the file; or an opened file, or an object of another library as `load` takes it.
        ``options``: keywords of the format's loader, where ``None`` stands for what it does unasked. Raises ModelError,
        with the file's name, InputError for an option that the format does not have.
        """
        if is_in_memory(path):
            from tract_core.api.reading import model_in_memory

            return model_in_memory(path, self._format_name, options, self._registry)
        if self._registry is not None:
            from tract_core.api.reading import loader_of, model_of_file

            return model_of_file(path, loader_of(self._format_name, self._registry, **options))
        return _load_or_find(path, self._format_name, options)

    def load_bytes(self, content: bytes, **options: Any) -> InferenceModel | Model:
        """The model in the content of a file; else like `load`. Raises ModelError, also where a format wants files."""
        from tract_core.api.reading import model_of_bytes

        return model_of_bytes(content, self._format_name, options, self._registry)

    def __repr__(self) -> str:
        return f"the loader of the format {self._format_name}"


def load(
    path: Source,
    *,
    inputs: Mapping[str | int, InferenceFact | Fact | str] | None = None,
    format_name: str | None = None,
    limits: LoadLimits | None = None,
) -> Model:
    """The model of a file of any installed format, typed and in normal form: ``tract.load("m.onnx").into_runnable()``.

    ``path``: that of a file or folder, or the URL of a file, as ``https://host/model.onnx#sha256=HEX``, which fsspec
    fetches, and which is kept; or an opened binary file; or an object that an installed format makes models of, as an
    ``onnx.ModelProto``, an ``onnx_ir.Model``, or an ``ExportedProgram`` of PyTorch.

    ``inputs``: what some inputs are, by name or number, as ``{"image": "B,3,224,224,f32"}``, in place of what the file
    says. ``format_name``: the format, where the name of the file does not tell it. ``limits``: what the file may ask
    for. The loaders of single formats, as `onnx`, have more options. Raises ModelError for a file that cannot be read
    or typed, InputError for an input that is not there, FactError or DimError for a text that is no fact.
    """
    if is_in_memory(path):
        from tract_core.api.reading import model_in_memory

        return _typed(model_in_memory(path, format_name, {"limits": limits}), inputs or {}, format_name or "in memory")
    name, found = _format_and_file(source_text(path, limits), format_name)
    return _typed(_load_or_find(found, name, {"limits": limits}), inputs or {}, name)


def _format_and_file(path: str, format_name: str | None) -> tuple[str, str | os.PathLike[str]]:
    """The format of a model, and its path, as `find_format`, which is asked where what is kept does not tell them."""
    known = installed()
    if known is not None and os.path.isfile(path):
        name = format_name or known.format_of(path)
        if name in known.handles:
            return name, path
    from tract_core.api.formats import find_format

    return find_format(checked_path(path), format_name)


def load_bytes(
    content: bytes,
    *,
    inputs: Mapping[str | int, InferenceFact | Fact | str] | None = None,
    format_name: str | None = None,
    limits: LoadLimits | None = None,
) -> Model:
    """The model in the content of a file, typed and in normal form; else as `load`.

    ``format_name``: the format, where the first bytes do not tell it. Raises as `load`, also for a format that wants
    files, and for a model whose weights are in other files.
    """
    from tract_core.api.formats import format_of_content

    name = format_name or format_of_content(checked_content(content))
    return _typed(Loader(name).load_bytes(content, limits=limits), inputs or {}, name)


def _load_or_find(path: str | os.PathLike[str], format_name: str, options: Mapping[str, Any]) -> InferenceModel | Model:
    """The model of a file, which is read when somebody looks at it where a plan for it is kept. Raises as `load`."""
    found = source_text(path, options.get("limits"))
    recipe = recipe_of_file(found, format_name, options)
    told = None if recipe is None else recipe.found()
    if recipe is None or told is None:
        from tract_core.api.reading import loader_of, model_of_file

        return model_of_file(found, loader_of(format_name, **options), recipe)

    def load() -> Any:
        from tract_core.api.reading import load_with, loader_of

        return load_with(loader_of(format_name, **options), found)

    if told.value is None:
        return InferenceModel(Later(load), recipe.telling())
    return Model(Later(lambda: _typed_alone(load(), str(path))), recipe.telling(told.value), told.value)


def _typed_alone(loaded: Any, where: str) -> TypedModel:
    """The graph of what a loader gave that gives no other."""
    from tract_core.api.reading import handle_of

    found = handle_of(loaded, where)
    assert isinstance(found, Model)  # as it was when it was loaded before
    return found.typed


def _typed(
    model: InferenceModel | Model, inputs: Mapping[str | int, InferenceFact | Fact | str], format_name: str
) -> Model:
    """The model in normal form, with what is said of its inputs."""
    if isinstance(model, Model):
        if inputs:
            problem = f"the inputs of a model of format {format_name} are what the file says"
            raise InputError(problem, hint="see Model.transform")
        return model
    for one, fact in inputs.items():
        model.set_input_fact(one, fact)
    return model.into_model()
