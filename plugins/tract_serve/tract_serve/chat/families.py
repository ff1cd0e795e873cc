"""How models write calls of functions: what their chat templates say of it."""

from __future__ import annotations

from typing import Final

from tract_core.frozen import frozen

HERMES: Final = "<tool_call>"
HERMES_END: Final = "</tool_call>"
MISTRAL: Final = "[TOOL_CALLS]"
LLAMA: Final = "<|python_tag|>"


@frozen
class Family:
    """``marks``: texts behind which a call stands. ``bare``: whether an answer that is JSON may be a call.

    ``arguments``: what the arguments are called. ``special``: whether marks are special tokens, which have to be
    spelled out to be seen. ``lists``: whether calls may come as a list. ``id_length``: letters of a call's name.
    """

    name: str
    marks: tuple[str, ...]
    bare: bool = True
    arguments: str = "arguments"
    special: bool = False
    lists: bool = True
    id_length: int = 24


_KNOWN: Final[tuple[tuple[tuple[str, ...], Family], ...]] = (
    ((HERMES,), Family("hermes", (HERMES,), bare=False)),
    ((MISTRAL,), Family("mistral", (MISTRAL,), special=True, id_length=9)),
    ((LLAMA, '"parameters"'), Family("llama", (LLAMA,), arguments="parameters", lists=False)),
)
"""By words that templates have, and others do not."""

_ANY: Final = Family("any", (HERMES, MISTRAL, LLAMA))


def family_of(template: str) -> Family:
    """The family of a chat template, by its text."""
    return next((family for words, family in _KNOWN if any(word in template for word in words)), _ANY)
