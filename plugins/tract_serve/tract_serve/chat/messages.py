"""The messages of a conversation, as chat templates want them."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from tract_serve.chat.fields import Fields

ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")

MOST_PARTS: Final = 1024
"""Parts of one message."""

MOST_CALLS: Final = 128
"""Calls of functions in one message."""


def messages_of(asked: Fields, most: int) -> list[dict[str, Any]]:
    """The messages of a request. ``most``: how many there may be. Raises WrongParameter."""
    found = [_message(one) for one in asked.objects("messages", most)]
    if not found:
        raise asked.wrong("messages", "is missing or empty, wanted at least one message")
    return found


def _message(told: Fields) -> dict[str, Any]:
    role = told.one_of("role", ROLES)
    found: dict[str, Any] = {"role": "system" if role == "developer" else role}
    calls = told.objects("tool_calls", MOST_CALLS)
    if calls and role != "assistant":
        raise told.wrong("tool_calls", f"stand in a message of the role {role!r}, wanted 'assistant'")
    if told.has("content") or not calls:
        found["content"] = _content(told)
    if calls:
        found |= {"content": found.get("content", ""), "tool_calls": [_call(one) for one in calls]}
    if role == "tool":
        found["tool_call_id"] = told.text("tool_call_id", "")
    if told.has("name"):
        found["name"] = told.text("name")
    return found


def _content(told: Fields) -> str:
    """The text of a message, which may come in parts."""
    if not isinstance(told.get("content"), list):
        return told.text("content")
    return "\n".join(_part(one) for one in told.objects("content", MOST_PARTS))


def _part(told: Fields) -> str:
    kind = told.text("type")
    if kind == "refusal":
        return told.text("refusal")
    if kind != "text":
        raise told.wrong("type", f"is {kind[:60]!r}: the model reads text alone", hint="leave images and sounds out")
    return told.text("text")


def _call(told: Fields) -> dict[str, Any]:
    """A call that the model has made. Arguments become an object, which templates write down in the model's own way."""
    told.one_of("type", ("function",), "function")
    function = told.object("function")
    if function is None:
        raise told.wrong("function", "is missing, wanted an object")
    given = function.get("arguments")
    text = function.text("arguments", "{}") if not isinstance(given, dict) else ""
    return {
        "id": told.text("id", ""),
        "type": "function",
        "function": {"name": function.text("name"), "arguments": _object(text) if text else given},
    }


def _object(text: str) -> Any:
    """An object, from its JSON; the text itself where a model has written none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return cast("object", found) if isinstance(found, dict) else text
