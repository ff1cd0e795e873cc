"""Which format a file has, as far as the ending of its name tells it."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import splitext
from typing import TYPE_CHECKING

from tract_core.plugins.default import default_registry
from tract_core.plugins.missing import ENDINGS

if TYPE_CHECKING:
    from tract_core.plugins.descriptor import Format


def formats_for(name: str, formats: Mapping[str, Format]) -> list[str]:
    """The formats whose endings fit a name best; the one that the ending is reserved for, where it is among several."""
    name = name.lower()
    ends = {one.name: [len(end) for end in one.extensions if name.endswith(end)] for one in formats.values()}
    longest = max(max(lengths, default=0) for lengths in ends.values()) if ends else 0
    fitting = [one for one, lengths in ends.items() if longest and longest in lengths]
    owner = ENDINGS.get(splitext(name)[1])
    return [one for one in fitting if default_registry().owner("tract_formats", one) == owner] or fitting


def formats_of_endings(formats: Mapping[str, Format]) -> dict[str, str]:
    """The format of files whose names end so, for each ending that a format has; empty where there are several."""
    endings = {ending for one in formats.values() for ending in one.extensions}
    found = {ending: formats_for(f"model{ending}", formats) for ending in sorted(endings)}
    return {ending: names[0] if len(names) == 1 and "." in ending else "" for ending, names in found.items()}
