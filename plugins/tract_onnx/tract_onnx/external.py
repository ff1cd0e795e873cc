"""What a file says of a tensor that is in another one: keys and values. `tract_core.frontend.external` opens it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tract_core.errors import CorruptModel


class Entry(Protocol):
    """A key and a value, as the file holds them."""

    key: str
    value: str


def entries(pairs: Iterable[Entry]) -> Mapping[str, str]:
    """The keys and values that say where a tensor is. Raises CorruptModel when one comes twice."""
    found: dict[str, str] = {}
    for pair in pairs:
        if pair.key in found:
            raise CorruptModel(f"external data says {pair.key[:40]!r} twice")
        found[pair.key] = pair.value
    return found


def number(values: Mapping[str, str], key: str) -> int | None:
    """A count of bytes. Raises CorruptModel unless it is written in at most 19 decimal digits."""
    text = values.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        raise CorruptModel(f"external data has {key} {text[:40]!r}, wanted a number of bytes")
    return int(text)
