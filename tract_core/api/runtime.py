"""Runtimes, as users hold them, and how they are found."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.errors import InputError
from tract_core.plugins import Registry, default_registry
from tract_core.runtime import protocol
from tract_core.runtime.lookup import find_runtime


class Runtime:
    """A hardware or software backend that can execute a `Model`."""

    __slots__ = ("_registry", "backend")

    def __init__(self, backend: protocol.Runtime, registry: Registry) -> None:
        """For this package; users call `runtime_for_name`."""
        self.backend = backend
        self._registry = registry

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
        typed = model.typed
        with self.calling("prepare"):
            plan = self.backend.prepare(typed)
        return Runnable(model.hand_over(f"Runtime.prepare (runtime {self.name()!r})"), plan, self)

    def calling(self, doing: str) -> AbstractContextManager[None]:
        """Around every call into the backend: other exceptions are failures of the plugin, as PluginError."""
        return self._registry.blaming("tract_runtimes", self.name(), doing)

    def __repr__(self) -> str:
        return f"Runtime({self.name()!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return runtime_for_name, (self.name(),)


def runtime_for_name(name: str, registry: Registry | None = None) -> Runtime:
    """The runtime of that name, from the installed plugins. ``"default"`` is the best CPU runtime that is installed.

    Raises PluginError for a name that is not known, with those that are and the ``pip install`` that would add it,
    and for a runtime that does not work on this machine, with the reason.
    """
    registry = registry or default_registry()
    return Runtime(find_runtime(name, registry), registry)
