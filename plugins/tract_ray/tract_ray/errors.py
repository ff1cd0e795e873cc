"""What is raised where rows of a batch cannot be scored."""

from __future__ import annotations

from collections.abc import Mapping

from tract_core.errors import TractError

SHOWN = 5
"""Rows that an error names."""


class BadRows(TractError):
    """Rows of a batch do not fit the model, or the model fails on them.

    ``rows``: why, by their number in the batch, counted from 0.
    """

    advice = "on_error='null' or 'dead_letter' sets such rows aside, and scores the others"

    def __init__(self, rows: Mapping[int, str], of: int, *, more: bool = False, hint: str | None = None) -> None:
        """``of``: rows of the batch. ``more``: whether there may be others. ``hint``: of the error of the first row."""
        self.rows, self.of = dict(rows), of
        reasons: dict[str, list[int]] = {}
        for row, why in rows.items():
            reasons.setdefault(why, []).append(row)
        listed = "".join(f"\n  row {_listed(same)}: {why}" for why, same in list(reasons.items())[:SHOWN])
        count = f"{len(rows)} or more" if more else str(len(rows))
        advice = f"{hint}; {self.advice}" if hint else None
        super().__init__(f"{count} of {of} rows cannot be scored:{listed}", hint=advice)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self.rows, self.of, self.problem, self.where, self.hint)


def _listed(rows: list[int]) -> str:
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return ", ".join(map(str, rows[:SHOWN])) + more


def _rebuilt(rows: Mapping[int, str], of: int, problem: str, where: str | None, hint: str | None) -> BadRows:
    error = BadRows.__new__(BadRows)
    TractError.__init__(error, problem, where=where, hint=hint)
    error.rows, error.of = dict(rows), of
    return error
