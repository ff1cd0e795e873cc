"""How models are read of which no plan is kept: plugins bring the loaders, and what these raise is a ModelError."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tract_core.analysis.inference import InferenceModel as CoreInferenceModel
from tract_core.api.formats import format_of_content, made, missing_file
from tract_core.api.given import checked_content, source_path
from tract_core.api.handle import was_made
from tract_core.api.in_memory import content_of, format_of_object
from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.errors import CorruptModel, InputError, ModelError, TractError
from tract_core.model.typed import TypedModel
from tract_core.plugins import default_registry
from tract_core.plugins.missing import not_installed
from tract_core.prepared.signature import ModelSignature
from tract_core.safe_files import is_one_file, noting_files

if TYPE_CHECKING:
    from tract_core.plugins import Registry
    from tract_core.prepared.recipe import Recipe


def model_of_file(path: str | os.PathLike[str], loader: Any, recipe: Recipe | None = None) -> InferenceModel | Model:
    """The model of a file or folder. ``recipe``: how it is made, where a plan for it may be kept. Raises ModelError."""
    with noting_files() as noted:
        loaded = handle_of(load_with(loader, path), str(path))
    typed = isinstance(loaded, Model)
    # What a loader warns of would not be said again, but for an InferenceModel, which keeps that.
    if recipe is not None and is_one_file(Path(path), noted) and not (typed and getattr(loader, "warns", True)):
        was_made(loaded, recipe.telling(ModelSignature.of(loaded.typed) if typed else None))
    return loaded


def model_of_bytes(
    content: bytes, format_name: str, options: Mapping[str, Any], registry: Registry | None = None
) -> InferenceModel | Model:
    """The model in the content of a file. Raises ModelError, InputError for a format that wants files."""
    checked_content(content)
    loader = loader_of(format_name, registry, **options)
    if not hasattr(loader, "load_bytes"):
        raise InputError(f"models of the format {format_name} are loaded from files", hint="see load")
    return handle_of(guarded(partial(loader.load_bytes, content), "model"), "model")


def model_in_memory(
    given: Any, format_name: str | None, options: Mapping[str, Any], registry: Registry | None = None
) -> InferenceModel | Model:
    """The model of an opened file, or of an object of another library. Raises InputError for anything else."""
    content = content_of(given, options.get("limits"))
    if content is not None:
        return model_of_bytes(content, format_name or format_of_content(content), options, registry)
    formats = (registry or default_registry()).formats()
    loader = loader_of(format_of_object(given, format_name, formats), registry, **options)
    where = type(given).__name__
    return handle_of(guarded(partial(loader.load_object, given), where), where)


def loader_of(format_name: str, registry: Registry | None = None, **flags: Any) -> Any:
    """The object of the installed plugin that loads a format, made with those of ``flags`` that are not ``None``.

    Raises PluginError when there is none, InputError for flags that the format does not have.
    """
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
    if isinstance(loaded, CoreInferenceModel):
        return InferenceModel(loaded)
    if isinstance(loaded, TypedModel):
        return Model.from_typed(loaded).declutter()
    wanted = "an InferenceModel or a TypedModel"
    raise ModelError(f"the loader gave a {type(loaded).__name__}, wanted {wanted}", where=where)
