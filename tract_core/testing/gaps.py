"""What a runtime is known not to do yet, said by its own distribution.

Rows of the table ``known_gaps``, keyed by the runtime's name. The list is strict: a case that is listed and passes is a
failure, and so is a gap that no case has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

from tract_core.plugins.tables import TableKey


@dataclass(frozen=True, slots=True)
class Gap:
    """Cases that a runtime gets wrong or refuses.

    ``case``: their name, where ``*`` stands for anything. ``reason``: why, for a reader. ``checks``: the checks of
    the kit that fail (``"fixed"``, ``"symbolic"``, ...); all of them when empty.
    """

    case: str
    reason: str
    checks: tuple[str, ...] = ()

    def covers(self, case: str, check: str) -> bool:
        """Whether this check of this case is known to fail."""
        return fnmatchcase(case, self.case) and (not self.checks or check in self.checks)


def _gaps_row(key: str, value: Any) -> str | None:
    if isinstance(value, Sequence) and all(isinstance(gap, Gap) for gap in cast("Iterable[object]", value)):
        return None
    return f"is {value!r}, wanted a list of Gap"


KNOWN_GAPS: TableKey[str, Sequence[Gap]] = TableKey(
    "known_gaps", "what a runtime, by its name, is known not to do yet", _gaps_row
)
