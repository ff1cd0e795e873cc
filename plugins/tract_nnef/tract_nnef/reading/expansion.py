"""How many statements the call of a fragment is read as, found out before any of them is read.

Fragments that use each other twice in a few lines would be read for minutes before there are too many nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tract_core.limits import limits_now
from tract_nnef.syntax import ast


class Expansion:
    """Knows it for the fragments of a document."""

    def __init__(self, fragments: Mapping[str, ast.Fragment]) -> None:
        self._fragments = fragments
        self._sizes: dict[str, int] = {}

    def size(self, name: str, depth: int = 0) -> int:
        """The statements in a fragment and in those that it calls, whatever the values in it are; at least those.

        Operators that are no fragments of the document do not count, nor does what calls itself, or is deeper than
        allowed: reading that is refused.
        """
        fragment = self._fragments.get(name)
        if fragment is None or fragment.body is None:
            return 0
        if name not in self._sizes:
            self._sizes[name] = 0
            called = [one for statement in fragment.body for one in _calls(statement.value)]
            inner = sum(self.size(one, depth + 1) for one in called) if depth < limits_now().max_depth else 0
            self._sizes[name] = len(fragment.body) + inner
        return self._sizes[name]


def _calls(expression: ast.Expression) -> Iterator[str]:
    """The names of the operators that an expression calls in any case."""
    if isinstance(expression, ast.Invocation):
        yield expression.name
    parts = _PARTS.get(type(expression))
    for part in parts(expression) if parts else ():
        yield from _calls(part)


_PARTS: Final[Mapping[type, Callable[[Any], Sequence[ast.Expression]]]] = {
    ast.Array: lambda one: one.items,
    ast.Tuple: lambda one: one.items,
    ast.Subscript: lambda one: (one.of, one.index),
    ast.Range: lambda one: (one.of,),
    ast.Unary: lambda one: (one.of,),
    ast.Binary: lambda one: (one.left, one.right),
    ast.Select: lambda one: (one.condition,),
    ast.Comprehension: lambda one: [of for _, of in one.loops],
    ast.Invocation: lambda one: [argument.value for argument in one.arguments],
}
"""The parts of an expression that are evaluated in any case, by its kind."""
