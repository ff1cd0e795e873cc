"""What policies for many agents refuse, beside the errors of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tract_core.errors import InputError, TractError


class UnknownBrain(InputError):
    """There is no brain of that number in the runtime, or no longer."""

    advice: ClassVar[str | None] = "add_inferer returns the number of a brain; it ends with remove_inferer and clear"


class IncompatibleInferer(InputError):
    """A policy cannot take the place of another one: its inputs or outputs are different."""

    advice: ClassVar[str | None] = "export it with the same inputs and outputs: names, order, shapes, types"


class _Carrying(TractError):
    """An error that holds data, also when it was pickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), vars(self))


class OrphanedData(_Carrying):
    """Brains were removed that had observations which nobody has run.

    ``orphans``: those observations, by brain and agent.
    """

    advice: ClassVar[str | None] = "call run() first, or use what is in .orphans"

    def __init__(
        self, problem: str, *, orphans: Mapping[Any, Mapping[int, Mapping[str, Any]]] | None = None, **places: Any
    ) -> None:
        super().__init__(problem, **places)
        self.orphans = orphans or {}


class BrainsFailed(_Carrying):
    """Some of the brains that ran failed. What they were asked is as it was; the others ran.

    ``errors``: what went wrong, by brain. ``responses``: those of the brains that ran, by brain.
    """

    advice: ClassVar[str | None] = ".responses holds those of the other brains, .errors what went wrong"

    def __init__(
        self,
        problem: str,
        *,
        errors: Mapping[Any, Exception] | None = None,
        responses: Mapping[Any, Any] | None = None,
        **places: Any,
    ) -> None:
        super().__init__(problem, **places)
        self.errors = errors or {}
        self.responses = responses or {}


def names(found: Sequence[str]) -> str:
    """Names in a text."""
    return ", ".join(map(repr, found)) or "none"
