"""Whether a plugin fits this version of the seam, and whether its hooks are hooks. Nothing of it is asked here yet."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from tract_core.errors import PluginError
from tract_core.plugins import hookspecs
from tract_core.plugins.descriptor import PluginRecord
from tract_core.plugins.distributions import CORE
from tract_core.plugins.installing import how_to_upgrade

_VERSION: Final = "tract_api_version"
_HOOKS: Final = tuple(sorted(name for name in vars(hookspecs) if name.startswith("tract_")))
_MARK: Final = f"{hookspecs.PROJECT}_impl"
"""The attribute by which ``@hookimpl`` marks a function."""


def refusal(plugin: object, record: PluginRecord) -> PluginError | None:
    """Why a plugin does not fit this version of the seam, or ``None``. Raises PluginError when it does not say."""
    ask = getattr(plugin, _VERSION, None)
    if ask is None:
        what = "module" if isinstance(plugin, ModuleType) else "object"
        raise PluginError(
            f"the {what} {record.target!r}, where its entry point leads, has no hook {_VERSION}",
            hint="let the entry point lead to the module with the hooks, and let tract_api_version there return '1.0'",
        )
    if not callable(ask):
        raise PluginError(f"{_VERSION} is a {type(ask).__name__}, wanted a function", hint="have it return '1.0'")
    text = ask()
    try:
        major, minor = map(int, str(text).split("."))
    except ValueError:
        raise PluginError(f"{_VERSION} returned {text!r}, wanted a text like '1.0'") from None
    ours = hookspecs.API_VERSION
    if major == ours[0] and minor <= ours[1]:
        return None
    older = record.distribution if (major, minor) < ours else CORE
    found = f"it was made for version {major}.{minor} of the plugin interface, this is {ours[0]}.{ours[1]}"
    return PluginError(found, hint=how_to_upgrade(older))


def check_hooks(plugin: object) -> None:
    """Raises PluginError for a hook that is unknown or takes arguments, and for one that is not marked as a hook."""
    for name, function in _functions(plugin):
        if not hasattr(function, _MARK):
            if name in _HOOKS and name != _VERSION and not hasattr(function, f"{hookspecs.PROJECT}_spec"):
                raise PluginError(
                    f"{name} is not marked as a hook, and would not be asked", hint="put @hookimpl above it"
                )
            continue
        if name not in _HOOKS:
            from difflib import get_close_matches

            start = f"{hookspecs.PROJECT}_"  # which they have in common
            near = get_close_matches(name.removeprefix(start), [hook.removeprefix(start) for hook in _HOOKS], n=1)
            hint = f"did you mean {start + near[0]!r}?" if near else f"the hooks are {', '.join(_HOOKS)}"
            raise PluginError(f"there is no hook {name!r}", hint=hint)
        argument = next(iter(inspect.signature(function).parameters), None)
        if argument is not None:
            hint = f"write it as def {name}():, and let the entry point lead to a module, or to an instance of a class"
            raise PluginError(f"{name} takes the argument {argument!r}, and hooks are called without any", hint=hint)


def _functions(plugin: object) -> Iterator[tuple[str, Any]]:
    for name in dir(plugin):
        if not name.startswith("__") and callable(function := getattr(plugin, name, None)):
            yield name, function
