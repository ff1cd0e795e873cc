"""What hooks return and what is known of each plugin."""

from __future__ import annotations

import importlib
import traceback
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tract_core.errors import PluginError


@dataclass(frozen=True, slots=True)
class Frontend:
    """A model format: its name, the file endings it claims, and where its loader is.

    ``loader`` is ``"module:Class"``; the class takes no arguments and has ``load(path) -> InferenceModel | TypedModel``.
    """

    name: str
    extensions: tuple[str, ...]
    loader: str
    summary: str = ""


class PluginState(Enum):
    """How a plugin is doing."""

    AVAILABLE = "available"
    LOADED = "loaded"
    FAILED = "failed"
    BLOCKED = "blocked"
    INCOMPATIBLE = "incompatible"


@dataclass(slots=True)
class PluginRecord:
    """One installed plugin: who brings it, what it offers, and how it is doing.

    ``failures`` holds one text per thing that went wrong, the first line saying what, the rest how (a traceback).
    """

    name: str
    distribution: str
    version: str
    target: str
    state: PluginState = PluginState.AVAILABLE
    hooks: tuple[str, ...] = ()
    failures: list[str] = field(default_factory=list[str])

    @property
    def cause(self) -> str | None:
        """The first line of the first failure."""
        return self.failures[0].splitlines()[0] if self.failures else None

    def fail(self, doing: str, error: BaseException) -> None:
        """Record a failure."""
        trace = "".join(traceback.format_exception(error))
        self.failures.append(f"{doing}: {type(error).__name__}: {error}\n{trace}")


def load_object(reference: str) -> Any:
    """What ``"module:attribute"`` leads to. Raises PluginError when there is no such thing."""
    module_name, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
    except AttributeError as error:
        raise PluginError(f"{reference!r} leads nowhere: {error}") from error
    return found
