"""The fields of a request's JSON, each looked at for type and range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from tract_serve.chat.errors import WrongParameter

MOST_DEPTH: Final = 64
"""How deep schemas may be nested, and what else is walked through."""

_NAMES: Final = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}


class Fields:
    """An object of JSON. ``path``: where it stands in the request, as ``stream_options``; nothing for its body.

    A field that is ``null`` counts as one that is not there. Those that nobody asks for are ignored.
    """

    def __init__(self, told: object, path: str = "") -> None:
        """Raises WrongParameter for what is no object."""
        self.path = path
        self.told: Mapping[str, Any] = checked(told, dict, path or "body")

    def param(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def wrong(self, name: str, problem: str, **more: Any) -> WrongParameter:
        """The error for a field."""
        return WrongParameter(self.param(name), problem, **more)

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return self.told.get(name) is not None

    def get(self, name: str) -> Any:
        """Whatever it is."""
        return self.told.get(name)

    def text(self, name: str, default: str | None = None, most: int = 1 << 22) -> str:
        """A text of at most so many characters. Raises WrongParameter, also where it is missing without a default."""
        found = self.told.get(name)
        if found is None:
            if default is None:
                raise self.wrong(name, "is missing, wanted a text")
            return default
        text = checked(found, str, self.param(name))
        if len(text) > most:
            raise self.wrong(name, f"has {len(text)} characters, at most {most} are taken")
        return text

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false. Raises WrongParameter."""
        found = self.told.get(name)
        return default if found is None else checked(found, bool, self.param(name))

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number in a range. Raises WrongParameter."""
        found = self.told.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
            raise self.wrong(name, f"is {shown(found)}, wanted a number")
        if not low <= found <= high:
            raise self.wrong(name, f"is {shown(found)}, wanted a number from {low:g} to {high:g}")
        return found

    def whole(self, name: str, low: int, high: int) -> int | None:
        """A whole number in a range. Raises WrongParameter."""
        found = self.told.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.wrong(name, f"is {shown(found)}, wanted a whole number")
        if not low <= found <= high:
            raise self.wrong(name, f"is {shown(found)}, wanted a whole number from {low} to {high}")
        return found

    def objects(self, name: str, most: int) -> list[Fields]:
        """A list of at most so many objects; an empty one where it is missing. Raises WrongParameter."""
        return [Fields(one, f"{self.param(name)}[{place}]") for place, one in enumerate(self.list(name, most))]

    def list(self, name: str, most: int) -> Sequence[Any]:
        """A list of at most so many; an empty one where it is missing. Raises WrongParameter."""
        found = self.told.get(name)
        if found is None:
            return []
        several: list[Any] = checked(found, list, self.param(name))
        if len(several) > most:
            raise self.wrong(name, f"has {len(several)} elements, at most {most} are taken")
        return several

    def object(self, name: str) -> Fields | None:
        """An object; ``None`` where it is missing. Raises WrongParameter."""
        found = self.told.get(name)
        return None if found is None else Fields(found, self.param(name))

    def one_of(self, name: str, known: Sequence[str], default: str | None = None) -> str:
        """One of some texts. Raises WrongParameter."""
        found = self.text(name, default)
        if found not in known:
            raise self.wrong(name, f"is {shown(found)}, wanted {' or '.join(repr(one) for one in known)}")
        return found


def checked(value: object, kind: type, param: str) -> Any:
    """A value of a type of JSON. Raises WrongParameter."""
    if not isinstance(value, kind):
        raise WrongParameter(param, f"is {shown(value)}, wanted {_NAMES[kind]}")
    return value


def shallow(value: Any, param: str) -> Any:
    """A value that is not nested too deeply for whoever walks through it. Raises WrongParameter."""
    layer: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        layer = [
            inner
            for one in layer
            if isinstance(one, (dict, list))
            for inner in (cast("dict[str, Any]", one).values() if isinstance(one, dict) else cast("list[Any]", one))
        ]
        if not layer:
            return value
    raise WrongParameter(param, f"is nested more than {MOST_DEPTH} deep")


def shown(value: object) -> str:
    """A value, in a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(cast('list[object]', value))}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value[:60]) if isinstance(value, str) else str(value)[:60]
