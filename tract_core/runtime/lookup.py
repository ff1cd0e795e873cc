"""Find a runtime by name among the installed plugins."""

from __future__ import annotations

from typing import Final

from tract_core.errors import InputError, PluginError
from tract_core.plugins import Registry, default_registry
from tract_core.plugins.missing import not_installed
from tract_core.runtime.protocol import Runtime

BEST_CPU: Final = ("cpu", "reference")
"""What ``"default"`` stands for: the first of these that is installed."""


def find_runtime(name: str, registry: Registry | None = None) -> Runtime:
    """The runtime of that name, or for ``"default"`` the best CPU runtime that is installed.

    Raises PluginError for a name that is not known, with those that are and the ``pip install`` that would add it,
    and for a runtime that does not work on this machine, with the reason.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"a runtime is asked for by its name, a text; got {type(name).__name__}")
    registry = registry or default_registry()
    offers = registry.runtimes()
    chosen = next((one for one in BEST_CPU if one in offers), name) if name == "default" else name
    if chosen not in offers:
        raise not_installed("runtime", name, ["default", *offers])
    make = registry.load("tract_runtimes", chosen)
    with registry.blaming("tract_runtimes", chosen, "set-up"):
        runtime: Runtime = make()
        reason = runtime.why_unusable()
    if reason is not None:
        hint = "ask for 'reference' to run with the plain NumPy interpreter" if name == "default" else None
        raise PluginError(f"runtime {chosen!r} does not work here: {reason}", hint=hint)
    return runtime
