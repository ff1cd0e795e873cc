"""What lies in an archive as JSON: values that a document asks for, also in its very text.

A document may be a template: ``{{ sizes.hidden }}`` in its text stands for what the file ``sizes.json`` has there. Only
such places are known, no statements and no filters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from tract_core.errors import CorruptModel, Unsupported
from tract_nnef.archive.reading import Archive
from tract_nnef.reading.values import Value

_ENDING: Final = ".json"
_STEP: Final = re.compile(r"\.([A-Za-z_][\w-]*)|\[\s*(\d{1,9}|'[^']*'|\"[^\"]*\")\s*\]")
_TEMPLATE: Final = re.compile(r"\{([{%#])([^{}]*)\}\}?")
_NAME: Final = re.compile(r"\s*([A-Za-z_]\w*)")


class Resources:
    """The JSON files of an archive, each read when it is asked for."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._read: dict[str, Any] = {}

    def value(self, label: str, key: str) -> Value:
        """What the file ``label.json`` has at a path such as ``$.a.b[0]``. Raises CorruptModel."""
        if not key.startswith("$"):
            raise CorruptModel(
                f"the key {key[:80]!r} does not begin with $, which stands for the whole of {label!r:.80}"
            )
        return _as_value(_follow(self._whole(label), key[1:], f"{label}{_ENDING}"), f"{label}{_ENDING}: {key}")

    def rendered(self, text: str) -> str:
        """A document in which each ``{{ path }}`` is replaced by what it stands for. Raises ModelError.

        Where no JSON lies beside it, it is none, whatever is in its comments.
        """
        if not _TEMPLATE.search(text) or not any(name.endswith(_ENDING) for name in self._archive.names()):
            return text
        return _TEMPLATE.sub(self._filled, text)

    def _filled(self, found: re.Match[str]) -> str:
        kind, inside = found[1], found[2].strip()
        name = _NAME.match(inside)
        if kind != "{" or name is None:
            raise Unsupported(
                f"the template {found[0][:80]!r} is more than the name of a value",
                hint="only {{ name.of[0].value }} is known: fill in the rest before the model is loaded",
            )
        value = _follow(self._whole(name[1]), inside[name.end() :], f"{name[1]}{_ENDING}")
        return value if isinstance(value, str) else json.dumps(value)

    def _whole(self, label: str) -> Any:
        if label not in self._read:
            name = f"{label}{_ENDING}"
            if name not in self._archive:
                there = ", ".join(one for one in self._archive.names() if one.endswith(_ENDING)) or "no such file"
                raise CorruptModel(f"the file {name!r:.80} is wanted, there is {there}")
            try:
                self._read[label] = json.loads(self._archive.content(name).tobytes())
            except (ValueError, RecursionError) as error:
                raise CorruptModel(f"{name} is no JSON: {error}"[:200]) from None
        return self._read[label]


def _follow(value: Any, path: str, where: str) -> Any:
    """What is at the end of a path. Raises CorruptModel for a path that leads nowhere."""
    place = 0
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            raise CorruptModel(
                f"{path[place : place + 40]!r} is no step of a path, wanted .name or [number]", where=where
            )
        name: str | int = step[1] or (step[2].strip("'\"") if not step[2].isdigit() else int(step[2]))
        value = _inside(value, name, where)
        place = step.end()
    return value


def _inside(value: Any, name: str | int, where: str) -> Any:
    if isinstance(name, int) and isinstance(value, list):
        elements = cast("list[Any]", value)
        if name < len(elements):
            return elements[name]
        raise CorruptModel(f"element {name} is asked for, of {len(elements)}", where=where)
    if isinstance(name, str) and isinstance(value, dict):
        members = cast("Mapping[str, Any]", value)
        if name in members:
            return members[name]
        there = ", ".join(list(members)[:10])
        raise CorruptModel(f"there is no {name[:80]!r}; there is {there}"[:300], where=where)
    raise CorruptModel(f"{name!r:.80} is asked of a {type(value).__name__}", where=where)


def _as_value(value: Any, where: str) -> Value:
    if isinstance(value, list):
        return [_as_value(one, where) for one in cast("list[Any]", value)]
    if not isinstance(value, (bool, int, float, str)):
        raise CorruptModel(
            f"found a {type(value).__name__}, wanted a number, a text, a truth value or a list", where=where
        )
    return value
