"""Run models: the shapes that every runtime has, and the plain NumPy interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tract_core.api.runtime import Runtime, runtime_for_name

__all__ = ["Runtime", "runtime_for_name"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, as importing the core must not import what users hold."""
    if name in __all__:
        from tract_core.api import runtime

        return getattr(runtime, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
