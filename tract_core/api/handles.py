"""The names that installed formats add to the package: ``tract.onnx()`` makes a ``tract.Onnx``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from tract_core.plugins.references import load_object
from tract_core.prepared.environment import installed


def handle_named(name: str) -> Callable[..., Any]:
    """What a format brings under a name: its class, or what makes one. Raises AttributeError when no format has it.

    For a format that is not installed, but would come with a distribution of this project, it is what raises the
    PluginError that says so.
    """
    known = installed()
    if known is not None and known.handles.get(name):
        return load_object(known.handles[name])
    from tract_core.plugins import default_registry  # which looks for plugins
    from tract_core.plugins.missing import RESERVED

    for form in default_registry().formats().values():
        if form.handle and name in (form.name, _class_name(form.handle)):
            return default_registry().load("tract_formats", form.name, "handle")
    if name in default_registry().formats() or name in RESERVED["format"]:
        return _loader(name)
    raise AttributeError(f"module 'tract_core' has no attribute {name!r}")


def handle_names() -> list[str]:
    """The names of the installed formats, and of their classes."""
    from tract_core.plugins import default_registry

    formats = default_registry().formats().values()
    return [*(form.name for form in formats), *(_class_name(form.handle) for form in formats if form.handle)]


@cache
def _loader(format_name: str) -> Callable[[], Any]:
    """What makes the loader of a format that brings no class: the same object each time."""
    from tract_core.api.loading import Loader

    return partial(Loader, format_name)


def _class_name(handle: str) -> str:
    return handle.rpartition(":")[2]
