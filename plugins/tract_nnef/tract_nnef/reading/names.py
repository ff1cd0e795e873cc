"""What names stand for while a body is read, also where they are spelled in two ways.

Exporters write a name that is no identifier as it is in one place, ``i"input.1"``, and as ``input_1`` in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Generic, TypeVar

from tract_core.errors import CorruptModel
from tract_nnef.syntax import ast
from tract_nnef.syntax.names import spellings

ValueT = TypeVar("ValueT")


def names_in(targets: ast.Expression) -> list[str]:
    """The names that an assignment to ``targets`` gives values to. Raises CorruptModel for anything else."""
    if isinstance(targets, ast.Identifier):
        return [targets.name]
    if isinstance(targets, (ast.Array, ast.Tuple)):
        return [name for item in targets.items for name in names_in(item)]
    raise CorruptModel("only names, and arrays and tuples of names, can be assigned to")


class Spellings:
    """Names by what they become where only identifiers can be written."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, dict[str, None]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """A name is there."""
        for spelling in spellings(name):
            self._names.setdefault(spelling, {})[name] = None

    def remove(self, name: str) -> None:
        """A name that was there is there no more."""
        for spelling in spellings(name):
            self._names[spelling].pop(name, None)

    def alike(self, name: str) -> str | None:
        """The one name that is spelled like this one; ``None`` where there is none, or more than one."""
        found = {one for spelling in spellings(name) for one in islice(self._names.get(spelling, ()), 2)}
        return found.pop() if len(found) == 1 else None


class NamedValues(Generic[ValueT]):
    """The values of names. How they are spelled is looked at once one is not found."""

    def __init__(self, values: Mapping[str, ValueT] | None = None) -> None:
        self._values = dict(values or {})
        self._spellings: Spellings | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> ValueT | None:
        """The value of exactly that name."""
        return self._values.get(name)

    def alike(self, name: str) -> str | None:
        """The one name with a value that is spelled like this one."""
        if self._spellings is None:
            self._spellings = Spellings(self._values)
        return self._spellings.alike(name)

    def assign(self, name: str, value: ValueT) -> None:
        """From now on, a name stands for that."""
        self._values[name] = value
        if self._spellings is not None:
            self._spellings.add(name)

    def pop(self, name: str) -> ValueT | None:
        """Forget a name. Returns what it stood for."""
        if self._spellings is not None and name in self._values:
            self._spellings.remove(name)
        return self._values.pop(name, None)

    def items(self) -> Iterable[tuple[str, ValueT]]:
        """Names and their values, in the order in which they were first assigned."""
        return self._values.items()

    def with_more(self, values: Mapping[str, ValueT]) -> NamedValues[ValueT]:
        """These and others, which hide what they share a name with."""
        return NamedValues({**self._values, **values})
