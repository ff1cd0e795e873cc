"""Texts that lead to an object of a module."""

from __future__ import annotations

from typing import Any

from tract_core.errors import PluginError
from tract_core.importing import imported


def load_object(reference: str) -> Any:
    """What ``"module:attribute"`` leads to; importing the module may raise anything.

    Raises PluginError when the text has another form, or the module has no such attribute.
    """
    module_name, colon, attribute = reference.partition(":")
    if not (module_name and colon and attribute):
        raise PluginError(f"{reference!r} leads nowhere, wanted a text like 'module:attribute'")
    found: Any = imported(module_name)
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise PluginError(f"{reference!r} leads nowhere: module {module_name!r} has no {attribute!r}") from None
    return found
