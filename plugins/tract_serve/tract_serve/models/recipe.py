"""How a model is made ready: of which file, with which facts, transforms and runtime."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import tract_core as tract
from tract_core.api.runtime import runtime_with
from tract_core.frozen import frozen
from tract_core.limits import LoadLimits


@frozen
class ServingRecipe:
    """``path``: of the file or folder. ``format_name``: its format, where its name does not tell it.

    ``facts``: of inputs, by name, as texts. ``transforms``: as `Model.transform` takes them, in order. ``runtime``: its
    name, with options. ``threads``: of each run, where the runtime has any; ``None`` for as many as it takes.
    ``has_sequences``: whether the configuration says that the server gives some inputs, as the state of sequences.
    """

    path: str
    format_name: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    transforms: tuple[str, ...] = ()
    runtime: str = "default"
    threads: int | None = None
    limits: LoadLimits | None = None
    has_sequences: bool = False

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
    return runtime_with(recipe.runtime, threads=recipe.threads).prepare(model)
