"""Calls of functions, found in what a model writes while it writes it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterator
from typing import Any, Final, Literal, cast

from tract_core.frozen import frozen
from tract_serve.chat.families import HERMES, HERMES_END, LLAMA, MISTRAL, Family

_NAMED: Final = re.compile(r"\s*([\w.-]{1,64})\s*(?:\[CALL_ID\]\s*\w*\s*)?(?:\[ARGS\])?\s*(?=\{)")
"""In front of arguments, as newer models of Mistral write it."""

_BETWEEN: Final = re.compile(r"[\s;,]*")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@frozen
class Call:
    """A call of the function ``name``. ``arguments``: JSON; ``id``: what the answer to it is named by."""

    id: str
    name: str
    arguments: str

    def told(self) -> dict[str, Any]:
        """As the interface says it."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@frozen
class Read:
    """``text``: of an answer, and ``calls``: which came behind it."""

    text: str = ""
    calls: tuple[Call, ...] = ()


class CallReader:
    """Takes an answer apart: what is text, and which functions it calls. What may become a call is held back."""

    def __init__(self, names: Collection[str], family: Family, *, forced: bool = False) -> None:
        """``names``: of the functions. ``forced``: whether the answer was held to a form of calls."""
        self._names, self._family, self._forced = frozenset(names), family, forced
        self._state: Literal["text", "marked", "rest"] = "text"
        self._held = ""
        self._parts: list[str] = []
        self._mark = ""
        self._is_begun, self._is_fresh = False, True

    def take(self, piece: str) -> Read:
        """What is certain now."""
        if self._is_rest():
            self._parts.append(piece)
            return Read()
        self._held += piece
        text, calls = "", list[Call]()
        while True:
            before = self._state, len(self._held)
            if self._state == "text":
                text += self._text()
            else:
                found, more = self._marked(len(piece))
                calls += found
                text += more
            if self._is_rest() or before == (self._state, len(self._held)):
                return Read(text, tuple(calls))

    def finish(self) -> Read:
        """What was held back."""
        rest, self._held = self._held + "".join(self._parts), ""
        if self._state == "text":
            return Read("" if self._is_begun and self._is_fresh and not rest.strip() else rest)
        found = [*self._calls(rest)]
        is_call = found and (self._mark or self._forced or all(one.name in self._names for one in found))
        return Read(calls=tuple(found)) if is_call else Read(self._mark + rest)

    def _is_rest(self) -> bool:
        return self._state == "rest"

    def _text(self) -> str:
        """Text, up to the first mark. Nothing but spaces in front of a call, or between two, is no text."""
        held, marks = self._held, self._family.marks
        start = held.lstrip()
        if self._is_fresh and not start:
            return ""
        if not self._is_begun and start and start[0] in "{[" and (self._family.bare or self._forced):
            if any(mark.startswith(start) for mark in marks):
                return ""
            if not start.startswith(marks):
                self._hold("", held)
                return ""
        place, mark = min(((held.find(one), one) for one in marks if one in held), default=(-1, ""))
        if mark:
            self._hold(mark, held[place + len(mark) :])
            return "" if self._is_fresh and not held[:place].strip() else held[:place]
        text = held[: len(held) - max(_overlap(held, one) for one in marks)]
        if self._is_fresh and not text.strip():
            return ""
        self._held = held[len(text) :]
        self._is_begun, self._is_fresh = True, False
        return text

    def _hold(self, mark: str, rest: str) -> None:
        self._is_begun, self._mark, self._held = True, mark, rest
        self._state = "marked" if mark == HERMES else "rest"

    def _marked(self, new: int) -> tuple[list[Call], str]:
        """The call between the marks of Hermes, once it is whole; or the text, where it is none."""
        place = self._held.find(HERMES_END, max(0, len(self._held) - new - len(HERMES_END)))
        if place < 0:
            return [], ""
        inside, self._held = self._held[:place], self._held[place + len(HERMES_END) :]
        self._state = "text"
        found = [*self._calls(inside)]
        self._is_fresh = bool(found)
        return found, "" if found else f"{HERMES}{inside}{HERMES_END}"

    def _calls(self, text: str) -> Iterator[Call]:
        """The calls that a text is, if it is nothing else."""
        try:
            found = [*_objects(text.replace(LLAMA, "").replace(MISTRAL, " "))]
        except (ValueError, RecursionError):
            return
        several = [one for each in found for one in (cast("list[Any]", each) if isinstance(each, list) else [each])]
        calls = [self._call(one) for one in several]
        if all(one is not None for one in calls):
            yield from cast("list[Call]", calls)

    def _call(self, told: Any) -> Call | None:
        if not isinstance(told, dict):
            return None
        given = cast("dict[str, Any]", told)
        given = given["function"] if isinstance(given.get("function"), dict) else given
        name = given.get("name")
        arguments = given.get("arguments", given.get("parameters", {}))
        if not isinstance(name, str) or not isinstance(arguments, (dict, str)):
            return None
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return Call(new_id(self._family.id_length), _whole(name), _whole(text))


def _whole(text: str) -> str:
    """A text without halves of characters, which JSON can spell, and no answer can have."""
    return text.encode("utf-8", "replace").decode()


def new_id(length: int) -> str:
    """What a call is named by; with ``call_`` in front where the model does not want it of a certain length."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(length))
    return letters if length < 10 else f"call_{letters}"


def _objects(text: str) -> Iterator[Any]:
    """The values of JSON in a text, one behind the other; or arguments behind names. Raises ValueError."""
    decoder, place = json.JSONDecoder(), 0
    while True:
        between = _BETWEEN.match(text, place)
        assert between is not None  # it matches nothing, too
        place = between.end()
        if place == len(text):
            return
        named = _NAMED.match(text, place)
        if named is None:
            found, place = decoder.raw_decode(text, place)
        else:
            arguments, place = decoder.raw_decode(text, named.end())
            found = {"name": named[1], "arguments": arguments}
        yield found


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of a text are the beginning of a mark."""
    most = min(len(text), len(mark) - 1)
    return next((count for count in range(most, 0, -1) if mark.startswith(text[-count:])), 0)
