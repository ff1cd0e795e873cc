"""What a document says otherwise than the format has it, and how it is understood: one warning of each kind."""

from __future__ import annotations

import warnings
from enum import Enum

from tract_core.errors import ModelWarning
from tract_nnef.syntax.refusal import shown


class RemarkKind(Enum):
    """What can be said otherwise, and the warning about it: of the first name, and how many others there are."""

    AGAIN = "{name} is assigned again in line {detail}{more}: the later value holds for the lines behind it"
    SYMBOL = "{name} is not declared{more}: it is a symbol, as sizes are wanted where it is used"
    SPELLING = "{name} is not assigned{more}: {detail} is meant, the only name that is spelled like it"
    INPUT = "{name} is external and not listed as an input{more}: it is one, behind those that are listed"
    COMPUTED = "the input {name} is computed{more}: {detail} is the input, which is external"


class Remarks:
    """What was found in a document so far."""

    def __init__(self) -> None:
        self._found: dict[RemarkKind, dict[str, str]] = {}

    def note(self, kind: RemarkKind, name: str, detail: str | int = "") -> None:
        """Something is otherwise about a name. ``detail``: a line, or another name."""
        shown_detail = shown(detail) if isinstance(detail, str) else str(detail)
        self._found.setdefault(kind, {}).setdefault(name, shown_detail)

    def warn(self) -> None:
        """Warn of each kind that there is, with a ModelWarning in one line."""
        for kind, names in self._found.items():
            (name, detail), others = next(iter(names.items())), len(names) - 1
            more = f" (and {others} other{'s' * (others > 1)})" if others else ""
            warnings.warn(kind.value.format(name=shown(name), detail=detail, more=more), ModelWarning, stacklevel=2)
