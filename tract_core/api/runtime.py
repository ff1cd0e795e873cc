"""Runtimes, as users hold them, and how they are found."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tract_core.api.handle import later_of, recipe_of, taken_later
from tract_core.api.model import Model
from tract_core.errors import InputError, TractError
from tract_core.limits import spending
from tract_core.plugins.parameters import given_parameters, parameters_of, parse_call
from tract_core.prepared.environment import installed
from tract_core.prepared.signature import ModelSignature
from tract_core.runtime import protocol
from tract_core.runtime.lookup import find_known, find_runtime

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable
    from tract_core.model.typed import TypedModel
    from tract_core.plugins import Registry
    from tract_core.prepared.recipe import Recipe


class Runtime:
    """A hardware or software backend that can execute a `Model`."""

    __slots__ = {
        "_registry": "",
        "backend": "The runtime as its plugin brings it: `tract_core.runtime.protocol`.",
    }

    def __init__(self, backend: protocol.Runtime, registry: Registry | None = None) -> None:
        """For this package; users call `runtime_for_name`. ``registry``: default: that of the installed plugins."""
        self.backend = backend
        self._registry = registry

    @property
    def registry(self) -> Registry:
        """The plugins among which it was found."""
        if self._registry is None:
            from tract_core.plugins import default_registry  # which looks for plugins

            self._registry = default_registry()
        return self._registry

    def name(self) -> str:
        """The name of the runtime. That of ``"default"`` is the name of the one that was chosen."""
        return self.backend.name

    def options(self) -> dict[str, Any]:
        """The options that it was asked for with, without those that are the default."""
        return given_parameters(self.backend)

    def prepare(self, model: Model) -> Runnable:
        """Make a model ready to run. Consumes the model, unless it raises; constants are not copied.

        Raises Unsupported, naming every operator that the runtime cannot run, and LimitExceeded where that takes longer
        or makes larger constants than the limits allow that the model was loaded with.
        """
        if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            hint = "call into_model() first" if type(model).__name__ == "InferenceModel" else "see Model.from_typed"
            raise InputError(f"a runtime prepares a Model, got {type(model).__name__}", hint=hint)
        from tract_core.api.runnable import Runnable

        by = f"Runtime.prepare (runtime {self.name()!r})"
        recipe = self._recipe_for(model)
        found = None if recipe is None else self._restored(recipe, model, by)
        if found is not None:
            return found
        typed = model.typed
        with calling(self, "prepare"), spending(typed.limits.for_rewriting):
            plan = self.backend.prepare(typed)
        if recipe is not None:
            self._keep(recipe, typed, plan)
        return Runnable(taken_later(model, by), plan, self)

    def _restored(self, recipe: Recipe, model: Model, by: str) -> Runnable | None:
        """What another process kept, if it is there. Consumes the model then."""
        from tract_core.api.runnable import Runnable

        known = recipe.found()
        if known is None or not isinstance(self.backend, protocol.KeepingRuntime):
            return None
        signature, kept = known.value
        later = later_of(model)
        with calling(self, "restore"):
            plan = self.backend.restored(kept, lambda: later.value)
        if plan is None:
            return None
        return Runnable(taken_later(model, by), plan, self, signature)

    def _recipe_for(self, model: Model) -> Recipe | None:
        """What a plan for a model is kept under, if it is."""
        recipe = recipe_of(model)
        if recipe is None or not isinstance(self.backend, protocol.KeepingRuntime):
            return None
        with calling(self, "prepare"):
            return recipe.then("prepare", self.name(), self.backend.told())

    def _keep(self, recipe: Recipe, model: TypedModel, plan: protocol.Plan) -> None:
        """Keep a plan for other processes, if it can be kept."""
        if isinstance(self.backend, protocol.KeepingRuntime):
            with calling(self, "keep"):
                kept = self.backend.kept(plan)
                if kept is not None:
                    recipe.keep((ModelSignature.of(model), kept))

    def __repr__(self) -> str:
        listed = "".join(f", {key}={value!r}" for key, value in self.options().items())
        return f"Runtime({self.name()!r}{listed})"

    def __reduce__(self) -> tuple[object, ...]:
        return _found_again, (self.name(), self.options())


@contextmanager
def calling(runtime: Runtime, doing: str) -> Generator[None]:
    """Around every call into a runtime: exceptions that are not ours are failures of its plugin, as PluginError."""
    try:
        yield
    except (TractError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        with runtime.registry.blaming("tract_runtimes", runtime.name(), doing):
            raise


def runtime_for_name(name: str, registry: Registry | None = None, **options: Any) -> Runtime:
    """The runtime of that name, from the installed plugins. ``"default"`` is the best CPU runtime that is installed.

    ``options``: the runtime's own, as ``tract list-runtimes`` lists them; ``"cpu(threads=2)"`` says the same as
    ``"cpu", threads=2``. Raises InputError for an option that it does not have, and PluginError for a name that is not
    known, with those that are and what would add it, and for a runtime that does not work here, with the reason.
    """
    known = installed() if registry is None else None
    found = None if known is None else find_known(name, options, (known.runtimes, known.default))
    return Runtime(found or find_runtime(name, registry, options), registry)


def runtime_with(name: str, registry: Registry | None = None, **wishes: Any) -> Runtime:
    """The runtime of that name, with those wishes as options that it knows, and that ``name`` does not say itself.

    For callers that take any runtime: ``runtime_with("reference", threads=2)`` is one without threads. A wish that is
    ``None`` is none. Raises as `runtime_for_name`.
    """
    found, (_, said) = runtime_for_name(name, registry), parse_call(name)
    known = {one.key for one in parameters_of(type(found.backend))} - {key.replace("-", "_") for key in said}
    taken = {key: value for key, value in wishes.items() if value is not None and key in known}
    return runtime_for_name(name, registry, **taken) if taken else found


def runtime_like(runtime: str | Runtime, options: dict[str, Any], registry: Registry | None) -> Runtime:
    """A runtime from itself, or from its name and its options. Raises as `runtime_for_name`."""
    if not isinstance(runtime, Runtime):
        return runtime_for_name(runtime, registry, **options)
    if options:
        raise InputError(f"a Runtime has its options already: {runtime!r}", hint="runtime_for_name takes options")
    return runtime


def _found_again(name: str, options: dict[str, Any]) -> Runtime:
    return runtime_for_name(name, **options)
