"""What the tensors of a graph are called in a model: files may call several the same, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.errors import LimitExceeded

MAX_NAME: Final = 4096
"""Characters in the name of a tensor."""


def unique_names(names: Sequence[str]) -> list[str]:
    """A name for each tensor: its own, with its number behind where it is empty or not the first of that name.

    Raises LimitExceeded for one that is too long.
    """
    found: list[str] = []
    taken, seen = set(names), set[str]()
    for index, name in enumerate(names):
        if len(name) > MAX_NAME:
            raise LimitExceeded(
                f"a name has {len(name)} characters, {MAX_NAME} are allowed", where=f"{name[:200]!r}..."
            )
        own = name
        if not name or name in seen:
            own = f"{name or 'tensor'}_{index}"
            while own in taken:
                own += "_"
        seen.add(own)
        taken.add(own)
        found.append(own)
    return found
