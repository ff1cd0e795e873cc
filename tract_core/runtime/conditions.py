"""Check what operators want of sizes: before a run, and in the middle of it when a node has told a size.

The conditions are those of the model (`tract_core.model.conditions`). A symbol of an enclosing model may have its value
only in some runs of a body; what mentions it is checked in those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tract_core.errors import InputError, RunError

if TYPE_CHECKING:
    from tract_core.model.conditions import Condition
    from tract_core.model.typed import TypedModel
    from tract_core.runtime.host import HostNode


class ComingConditions:
    """The conditions of a model that is run in these steps."""

    def __init__(self, model: TypedModel, steps: Sequence[HostNode]) -> None:
        self._first: list[tuple[Condition, str]] = []
        self._after: dict[int, list[tuple[Condition, str]]] = {}
        binder = {symbol: index for index, step in enumerate(steps) for symbol in step.binds}
        definitions = model.symbols.definitions
        given = definitions.with_known(model.given_symbols() | binder.keys())
        for condition, origin in model.conditions.bound_by(given, model.symbols):
            bound = [binder[symbol] for symbol in definitions.roots(condition.symbols) if symbol in binder]
            later = self._after.setdefault(steps[max(bound)].node, []) if bound else self._first
            later.append((condition, origin))

    def check_all(self, values: Mapping[str, int]) -> None:
        """At the beginning of a run. Raises InputError, naming the node that wants what does not hold."""
        for condition, origin in self._first:
            problem = _problem(condition, values)
            if problem is not None:
                raise InputError(problem, where=origin, hint="give arrays whose sizes agree")

    def check_after(self, node: int, values: Mapping[str, int]) -> None:
        """When a node has run that gave symbols their values. Raises RunError, as `check_all` does InputError."""
        for condition, origin in self._after.get(node, ()):
            problem = _problem(condition, values)
            if problem is not None:
                raise RunError(problem, where=origin, hint="the size is only known in the middle of the run")


def check_conditions(model: TypedModel, values: Mapping[str, int]) -> None:
    """Raises InputError, naming the node that wants it, where something does not hold that these values tell."""
    for condition, origin in model.conditions.bound_by(frozenset(values), model.symbols):
        problem = _problem(condition, values)
        if problem is not None:
            raise InputError(problem, where=origin)


def _problem(condition: Condition, values: Mapping[str, int]) -> str | None:
    return condition.broken(values) if condition.symbols <= values.keys() else None
