"""Where models come from: loaders of the installed formats, answered by plugins."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tract_core.api.given import checked_content, source_path
from tract_core.api.handle import was_made
from tract_core.api.in_memory import content_of, format_of_object, is_in_memory
from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.errors import CorruptModel, InputError, ModelError, TractError
from tract_core.prepared.environment import installed
from tract_core.prepared.later import Later
from tract_core.prepared.recipe import recipe_of_file
from tract_core.prepared.signature import ModelSignature
from tract_core.safe_files import is_one_file, noting_files

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
            loader_of(format_name, registry)

    def load(self, path: Source, **options: Any) -> InferenceModel | Model:
        """The model of a file or folder: in normal form, or an `InferenceModel`, of which more can be said first.

        ``path``: that of the file; or an opened file, or an object of another library as `load` takes it.
        ``options``: keywords of the format's loader, where ``None`` stands for what it does unasked. Raises ModelError,
        with the file's name, InputError for an option that the format does not have.
        """
        if is_in_memory(path):
            return _of_memory(path, self._format_name, options, self._registry)
        if self._registry is not None:
            return handle_of(load_with(loader_of(self._format_name, self._registry, **options), path), str(path))
        return _load_or_find(path, self._format_name, options)

    def load_bytes(self, content: bytes, **options: Any) -> InferenceModel | Model:
        """The model in the content of a file; else like `load`. Raises ModelError, also where a format wants files."""
        checked_content(content)
        loader = loader_of(self._format_name, self._registry, **options)
        if not hasattr(loader, "load_bytes"):
            raise InputError(f"models of the format {self._format_name} are loaded from files", hint="see load")
        return handle_of(guarded(partial(loader.load_bytes, content), "model"), "model")

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
    from tract_core.api.formats import find_format

    if is_in_memory(path):
        return _typed(_of_memory(path, format_name, {"limits": limits}), inputs or {}, format_name or "in memory")
    name, found = find_format(source_path(path, limits), format_name)
    return _typed(_load_or_find(found, name, {"limits": limits}), inputs or {}, name)


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


def _of_memory(
    given: Any, format_name: str | None, options: Mapping[str, Any], registry: Registry | None = None
) -> InferenceModel | Model:
    """The model of an opened file, or of an object of another library. Raises InputError for anything else."""
    from tract_core.api.formats import format_of_content
    from tract_core.plugins import default_registry

    content = content_of(given, options.get("limits"))
    if content is not None:
        return Loader(format_name or format_of_content(content), registry).load_bytes(content, **options)
    formats = (registry or default_registry()).formats()
    loader = loader_of(format_of_object(given, format_name, formats), registry, **options)
    where = type(given).__name__
    return handle_of(guarded(partial(loader.load_object, given), where), where)


def _load_or_find(path: str | os.PathLike[str], format_name: str, options: Mapping[str, Any]) -> InferenceModel | Model:
    """The model of a file, which is read when somebody looks at it where a plan for it is kept. Raises as `load`."""

    def load() -> Any:
        return load_with(loader_of(format_name, **options), found)

    found = source_path(path, options.get("limits"))
    recipe = recipe_of_file(found, format_name, options)
    told = None if recipe is None else recipe.found()
    if recipe is not None and told is not None:
        if told.value is None:
            return InferenceModel(Later(load), recipe.telling())
        return Model(Later(lambda: _typed_alone(load(), str(path))), recipe.telling(told.value), told.value)
    with noting_files() as noted:
        loader = loader_of(format_name, **options)
        loaded = handle_of(load_with(loader, found), str(path))
    typed = isinstance(loaded, Model)
    # What a loader warns of would not be said again, but for an InferenceModel, which keeps that.
    if recipe is not None and is_one_file(found, noted) and not (typed and getattr(loader, "warns", True)):
        was_made(loaded, recipe.telling(ModelSignature.of(loaded.typed) if typed else None))
    return loaded


def _typed_alone(loaded: Any, where: str) -> TypedModel:
    """The graph of what a loader gave that gives no other."""
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


def loader_of(format_name: str, registry: Registry | None = None, **flags: Any) -> Any:
    """The object of the installed plugin that loads a format, made with those of ``flags`` that are not ``None``.

    Raises PluginError when there is none, InputError for flags that the format does not have.
    """
    from tract_core.api.formats import made
    from tract_core.plugins import default_registry
    from tract_core.plugins.missing import not_installed

    registry = registry or default_registry()
    formats = registry.formats()
    if format_name not in formats:
        raise not_installed("format", format_name, formats)
    return made(registry, format_name, "loader", [*formats[format_name].flags, "limits"], flags)


def load_with(loader: Any, path: str | os.PathLike[str]) -> Any:
    """What ``loader`` makes of a file or folder. Raises ModelError, with the file's name, whatever goes wrong."""
    found = source_path(path)
    return guarded(partial(_load, loader, found), str(found))


def _load(loader: Any, path: Path) -> Any:
    if not path.exists():
        from tract_core.api.formats import missing_file

        raise missing_file(path)
    return loader.load(path)


def guarded(load: Callable[[], Any], where: str) -> Any:
    """What ``load`` gives. Raises ModelError, whatever goes wrong."""
    try:
        return load()
    except TractError:
        raise
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", where=where, hint="check the path") from error
    except Exception as error:
        raise CorruptModel(f"cannot be read: {type(error).__name__}: {error}", where=where) from error


def handle_of(loaded: Any, where: str) -> InferenceModel | Model:
    """What users hold of a model that a loader gave. Raises ModelError for what is none."""
    from tract_core.analysis.inference import InferenceModel as CoreInferenceModel
    from tract_core.model.typed import TypedModel

    if isinstance(loaded, CoreInferenceModel):
        return InferenceModel(loaded)
    if isinstance(loaded, TypedModel):
        return Model.from_typed(loaded).declutter()
    wanted = "an InferenceModel or a TypedModel"
    raise ModelError(f"the loader gave a {type(loaded).__name__}, wanted {wanted}", where=where)
