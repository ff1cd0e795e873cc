"""From what a predictor was given to a model that is ready: prepared once a process, kept once a node."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.errors import InputError, MissingFile
from tract_ray.kept import MODELS
from tract_ray.placing import PlacedModel, digest_of_content, path_on_this_node
from tract_ray.ports import ScoredModel, scored_runnable
from tract_ray.worker import cpus_of_this_worker, is_reference, ray

if TYPE_CHECKING:
    from tract_core.api.fact import Fact, InferenceFact
    from tract_core.api.model import Model
    from tract_core.api.runtime import Runtime
    from tract_ray.settings import ModelRecipe

_NAMELESS: Final = "model"
"""The name of a model that came as bytes."""


def scored_model(recipe: ModelRecipe) -> ScoredModel:
    """The model of a recipe, as this process has it. Raises TractError as loading and preparing do."""
    source = _placed(recipe.source)
    threads = cpus_of_this_worker() if recipe.threads == "from_ray" else recipe.threads
    key = (_identity(source), tuple(sorted(recipe.facts.items())), recipe.runtime, threads, recipe.trust)
    return MODELS.get(key, lambda: _prepared(source, recipe, threads))


def _placed(source: Any) -> str | bytes:
    """A path or bytes, for whatever is given. Raises InputError for what is no model."""
    found = ray().get(source) if is_reference(source) else source
    if isinstance(found, bytes) and found is not source:
        content = np.frombuffer(found, np.uint8)
        found = PlacedModel(_NAMELESS, digest_of_content(content), content)
    if isinstance(found, PlacedModel):
        return str(path_on_this_node(found))
    if isinstance(found, (str, bytes)):
        return found
    raise InputError(f"a model is given by its path, or as bytes or a reference to them; got {type(found).__name__}")


def _identity(source: str | bytes) -> Hashable:
    """What is the same for the same model: of a file also when it was changed. Raises MissingFile."""
    if isinstance(source, bytes):
        return digest_of_content(source)
    path = Path(source).absolute()
    try:
        status = path.stat()
    except OSError as error:
        raise MissingFile("there is no such file", where=str(path)) from error
    return (str(path), status.st_mtime_ns, status.st_size, status.st_ino)


def _prepared(source: str | bytes, recipe: ModelRecipe, threads: int | None) -> ScoredModel:
    if recipe.trust is not False:
        from tract_ray.compiled import scored_archive

        return scored_archive(str(source), recipe.trust)
    runtime = _runtime(recipe, threads)
    return scored_runnable(runtime.prepare(_loaded(source, recipe)))


def _loaded(source: str | bytes, recipe: ModelRecipe) -> Model:
    from tract_core.api.loading import load, load_bytes

    facts: dict[str | int, InferenceFact | Fact | str] = {**recipe.facts}
    if isinstance(source, bytes):
        return load_bytes(source, inputs=facts)
    return load(source, inputs=facts, format_name=_format_of(source))


def _format_of(path: str) -> str | None:
    """The format of a file whose name does not tell it, as it came as bytes."""
    if not path.endswith(f"-{_NAMELESS}"):
        return None
    from tract_core.api.formats import format_of_content

    return format_of_content(Path(path).read_bytes())


def _runtime(recipe: ModelRecipe, threads: int | None) -> Runtime:
    """With so many threads. Raises InputError where it has none, and a number was asked for."""
    from tract_core.api.runtime import runtime_for_name, runtime_with

    if recipe.threads == "from_ray" or threads is None:
        return runtime_with(recipe.runtime, threads=threads)
    return runtime_for_name(recipe.runtime, threads=threads)
