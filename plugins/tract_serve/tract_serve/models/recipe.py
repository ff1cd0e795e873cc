"""How a model is made ready: of which file, with which facts, transforms and runtime."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import tract_core as tract
from tract_core.frozen import frozen
from tract_core.limits import LoadLimits

if TYPE_CHECKING:
    from tract_core.api.runtime import Runtime


@frozen
class ServingRecipe:
    """``path``: of the file or folder. ``format_name``: its format, where its name does not tell it.

    ``facts``: of inputs, by name, as texts. ``transforms``: as `Model.transform` takes them, in order. ``runtime``: its
    name, with options. ``threads``: of each run, where the runtime has any; ``None`` for as many as it takes.
    ``has_state``: whether the configuration says that inputs and outputs are the state of sequences.
    """

    path: str
    format_name: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    transforms: tuple[str, ...] = ()
    runtime: str = "default"
    threads: int | None = None
    limits: LoadLimits | None = None
    has_state: bool = False

    def to_json(self) -> str:
        """The fields, for another process."""
        limits = None if self.limits is None else asdict(self.limits)
        return json.dumps({one.name: getattr(self, one.name) for one in fields(self)} | {"limits": limits})

    @staticmethod
    def from_json(text: str) -> ServingRecipe:
        """What `to_json` wrote."""
        given: dict[str, Any] = json.loads(text)
        limits: Mapping[str, Any] | None = given.pop("limits")
        pairs = tuple((name, fact) for name, fact in given.pop("facts"))
        transforms = tuple(given.pop("transforms"))
        made = None if limits is None else LoadLimits(**limits)
        return ServingRecipe(**given, facts=pairs, transforms=transforms, limits=made)


def prepared(recipe: ServingRecipe) -> tract.Runnable:
    """The model, ready to run. Raises as `tract_core.load`, `Model.transform` and `Runtime.prepare` do."""
    model = tract.load(
        recipe.path, inputs=dict(recipe.facts) or None, format_name=recipe.format_name, limits=recipe.limits
    )
    for transform in recipe.transforms:
        model.transform(transform)
    return _runtime(recipe).prepare(model)


def _runtime(recipe: ServingRecipe) -> Runtime:
    """The runtime, with so many threads, if it has any."""
    found = tract.runtime_for_name(recipe.runtime)
    known = {one.name for one in fields(found.backend)}  # pyright: ignore[reportArgumentType]: runtimes are dataclasses
    if recipe.threads is None or "threads" not in known or "threads" in found.options():
        return found
    return tract.runtime_for_name(found.name(), **found.options(), threads=recipe.threads)
