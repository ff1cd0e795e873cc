"""What a predictor is made with, checked, and picklable: whoever receives it prepares the model again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from tract_core.errors import InputError
from tract_core.frozen import frozen

ModelSource = Any
"""A path, bytes, a `PlacedModel`, or a reference to one of these two in Ray's object store."""

Threads = int | Literal["from_ray"] | None

OnError = Literal["raise", "null", "dead_letter"]

Progress = bool | Callable[[int, float], object]

_ON_ERROR: Final = ("raise", "null", "dead_letter")


@frozen
class ModelRecipe:
    """How a model is made ready: ``source``, ``facts``, ``runtime``, ``threads`` and ``trust`` of a Predictor."""

    source: ModelSource
    facts: Mapping[str, str]
    runtime: str
    threads: Threads
    trust: bool | str

    def __post_init__(self) -> None:
        """Raises InputError for what cannot be."""
        if self.threads not in {"from_ray", None} and not _is_count(self.threads):
            raise InputError(f"threads is {self.threads!r}, wanted a number from 1 on, 'from_ray' or None")
        if self.trust is not False and not isinstance(self.source, str):
            raise InputError("trust is for the machine code of an archive, which is given by its path")
        if self.trust is not False and self.facts:
            raise InputError("the sizes of compiled models are fixed", hint="leave facts or trust out")


@frozen
class Columns:
    """Which are what: ``inputs`` and ``outputs`` of a Predictor, ``kept`` its columns, ``error`` its error_column."""

    inputs: Mapping[str, str] | None
    outputs: Mapping[str, str] | None
    kept: tuple[str, ...] | None
    error: str


@frozen
class Settings:
    """All: ``recipe``, ``columns``, and ``at_once``, ``on_error``, ``dead_letter``, ``progress`` of a Predictor."""

    recipe: ModelRecipe
    columns: Columns
    at_once: int | None
    on_error: OnError
    dead_letter: str | None
    progress: Progress

    def __post_init__(self) -> None:
        """Raises InputError for what cannot be."""
        if self.on_error not in _ON_ERROR:
            raise InputError(f"on_error is {self.on_error!r}, wanted one of {', '.join(map(repr, _ON_ERROR))}")
        if (self.on_error == "dead_letter") != (self.dead_letter is not None):
            problem = "on_error='dead_letter' and dead_letter=FOLDER go together"
            raise InputError(problem, hint="dead_letter names the folder that bad rows are written to")
        if self.at_once is not None and not _is_count(self.at_once):
            raise InputError(f"at_once is {self.at_once!r}, wanted a number of rows from 1 on, or None")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
