"""Runtimes, as users hold them, and how they are found."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tract_core.api.model import Model
from tract_core.errors import InputError
from tract_core.plugins import Registry, default_registry
from tract_core.runtime import protocol
from tract_core.runtime.lookup import find_runtime

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable


class Runtime:
    """A hardware or software backend that can execute a `Model`."""

    __slots__ = {
        "backend": "The runtime as its plugin brings it: `tract_core.runtime.protocol`.",
        "registry": "The plugins among which it was found.",
    }

    def __init__(self, backend: protocol.Runtime, registry: Registry) -> None:
        """For this package; users call `runtime_for_name`."""
        self.backend = backend
        self.registry = registry

    def name(self) -> str:
        """The name of the runtime. That of ``"default"`` is the name of the one that was chosen."""
        return self.backend.name

    def prepare(self, model: Model) -> Runnable:
        """Make a model ready to run. Consumes the model, unless it raises; constants are not copied.

        Raises Unsupported, naming every operator that the runtime cannot run.
        """
        if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            hint = "call into_model() first" if type(model).__name__ == "InferenceModel" else "see Model.from_typed"
            raise InputError(f"a runtime prepares a Model, got {type(model).__name__}", hint=hint)
        from tract_core.api.runnable import Runnable

        typed = model.typed
        with calling(self, "prepare"):
            plan = self.backend.prepare(typed)
        return Runnable(model.into_typed(by=f"Runtime.prepare (runtime {self.name()!r})"), plan, self)

    def __repr__(self) -> str:
        return f"Runtime({self.name()!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return runtime_for_name, (self.name(),)


def calling(runtime: Runtime, doing: str) -> AbstractContextManager[None]:
    """Around every call into a runtime: exceptions that are not ours are failures of its plugin, as PluginError."""
    return runtime.registry.blaming("tract_runtimes", runtime.name(), doing)


def runtime_for_name(name: str, registry: Registry | None = None) -> Runtime:
    """The runtime of that name, from the installed plugins. ``"default"`` is the best CPU runtime that is installed.

    Raises PluginError for a name that is not known, with those that are and the ``pip install`` that would add it,
    and for a runtime that does not work on this machine, with the reason.
    """
    registry = registry or default_registry()
    return Runtime(find_runtime(name, registry), registry)
