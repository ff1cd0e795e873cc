"""Operators by name, as files ask for them: which row of the table ``tensorflow`` answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tract_core.plugins.tables import Table

if TYPE_CHECKING:
    from tract_core.ops.wired import Results
    from tract_tensorflow.graphdef.wiring import GraphWiring

Wires = Callable[[Any, "GraphWiring"], "Results"]
"""What wires a node: a `TensorflowFn`, which says that the first argument is a `GraphNode`."""

MOST_GUESSES: Final = 50
"""Unknown operators for which a similar name is looked for: a report lists no more, and each takes a millisecond."""


class Operators:
    """The rows of a table ``tensorflow``, ready to be looked up, and what to do about those that are not there."""

    def __init__(self, table: Table[str, Wires]) -> None:
        self._table = table
        self._guesses: set[str] = set()

    def find(self, op_type: str) -> Wires | None:
        """The function for an operator."""
        return self._table.find(op_type)

    def advice(self, op_type: str) -> str:
        """What to do about an operator that is not known."""
        self._guesses.add(op_type)
        if len(self._guesses) <= MOST_GUESSES:
            from difflib import get_close_matches

            names = {name.lower(): name for name in self._table.names()}
            if near := get_close_matches(op_type.lower(), names, n=1, cutoff=0.85):
                return f"did you mean {names[near[0]]!r}? A plugin can add others: see docs/plugins.md"
        return "a plugin can add it: see docs/plugins.md, and 'tract plugins' for what is installed"
