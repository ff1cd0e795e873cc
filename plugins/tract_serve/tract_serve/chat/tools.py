"""The functions that a model may call, and whether it has to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from tract_core.frozen import frozen
from tract_serve.chat.fields import Fields, checked, shallow, shown

MOST_TOOLS: Final = 128
"""Functions of one request."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@frozen
class Tool:
    """A function, by its ``name``. ``told``: as the client says it; ``parameters``: a schema of JSON."""

    name: str
    told: Any
    parameters: Any


@frozen
class Tools:
    """The functions of a request, ``known`` to the model. ``forced``: those of which one has to be called.

    ``several``: whether more may be.
    """

    known: tuple[Tool, ...] = ()
    forced: tuple[Tool, ...] = ()
    several: bool = True


def tools_of(asked: Fields) -> Tools:
    """The functions of a request; none where the client wants none called. Raises WrongParameter."""
    for name in ("functions", "function_call"):
        if asked.has(name):
            raise asked.wrong(name, "is no longer taken", hint="name functions by 'tools' and 'tool_choice'")
    known = tuple(_tool(one) for one in asked.objects("tools", MOST_TOOLS))
    names = [one.name for one in known]
    if len(set(names)) < len(names):
        raise asked.wrong("tools", "two functions have the same name")
    several = asked.flag("parallel_tool_calls", default=True)
    named = _named(asked, names)
    if named is not None:
        return Tools(known, tuple(one for one in known if one.name == named), several=False)
    choice = "auto"
    if asked.has("tool_choice"):
        choice = asked.one_of("tool_choice", ("none", "auto", "required"))
    if choice == "required" and not known:
        raise asked.wrong("tool_choice", "is 'required', and there are no tools")
    if choice == "none":
        return Tools()
    return Tools(known, known if choice == "required" else (), several)


def _named(asked: Fields, names: Sequence[str]) -> str | None:
    """The function that has to be called, if the choice is one."""
    if not isinstance(asked.get("tool_choice"), dict):
        return None
    choice = asked.object("tool_choice")
    assert choice is not None  # it was looked at
    choice.one_of("type", ("function",))
    function = choice.object("function")
    name = choice.text("name") if function is None else function.text("name")
    if name not in names:
        raise asked.wrong("tool_choice", f"names {name[:60]!r}, and there is no such function in 'tools'")
    return name


def _tool(told: Fields) -> Tool:
    told.one_of("type", ("function",))
    function = told.object("function")
    if function is None:
        raise told.wrong("function", "is missing, wanted an object")
    name = function.text("name")
    if not _NAME.fullmatch(name):
        raise function.wrong("name", f"is {shown(name)}, wanted 1 to 64 letters, digits, '_', '-' or '.'")
    function.text("description", "")
    parameters = function.get("parameters")
    if parameters is not None:
        checked(parameters, dict, function.param("parameters"))
    shallow(told.told, told.path)
    return Tool(name, told.told, parameters or {"type": "object", "properties": {}})
