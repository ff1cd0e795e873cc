"""The operators that a document may use: its own fragments, those of the registries that it names, the standard's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from tract_core.errors import CorruptModel, MissingOperator, ModelWarning, Unsupported, meant
from tract_core.plugins import Registry
from tract_core.plugins.tables import Table
from tract_nnef.reading.expansion import Expansion
from tract_nnef.reading.values import Value
from tract_nnef.registry import ANY, NNEF, PY, STANDARD, Family, Operator, ReadFn, row_key
from tract_nnef.syntax import ast
from tract_nnef.syntax.parser import parse_fragments

ALIASES: Final[Mapping[str, str]] = {"pulse": "tract_pulse"}
"""Old names of registries."""


Evaluate = Callable[[ast.Expression, ast.Type], Value]
"""What an expression is that is given for a parameter of a type."""


class Declared:
    """An operator: its declaration, and what wires it where that has no body. ``parameters``: by name, in order."""

    def __init__(self, fragment: ast.Fragment, function: ReadFn | None = None) -> None:
        self.fragment = fragment
        self.function = function
        self.parameters = {parameter.name: parameter for parameter in fragment.parameters}

    @property
    def row(self) -> ReadFn:
        """What wires it. Raises Unsupported where nothing does."""
        if self.function is None:
            raise Unsupported(f"the operator {self.fragment.name!r} is declared, and nothing says what it computes")
        return self.function


class Operators:
    """Looks operators up by name."""

    def __init__(self, registry: Registry, fragments: Iterable[ast.Fragment] = ()) -> None:
        self._registry = registry
        self._table: Table[str, Operator | Family] = registry[NNEF]
        self._own = {fragment.name: fragment for fragment in fragments}
        self.expansion = Expansion(self._own)
        self._registries = [STANDARD]
        self._found: dict[str, Declared] = {}

    @staticmethod
    def all(registry: Registry) -> Operators:
        """Those of every registry that is installed."""
        found = Operators(registry)
        found._registries += sorted(registries(found._table) - {STANDARD})
        return found

    def use(self, name: str) -> None:
        """Look into a registry too, before those that were named earlier. Raises Unsupported for an unknown one."""
        name = ALIASES.get(name, name)
        check_registry(name, self._table)
        self._registries.append(name)
        self._found.clear()

    def fragment(self, name: str) -> ast.Fragment | None:
        """A fragment of the document."""
        return self._own.get(name)

    def find(self, name: str) -> Declared:
        """The operator of a name. Raises MissingOperator."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._find(name)
        return found

    def _find(self, name: str) -> Declared:
        own = self._own.get(name)
        if own is not None and own.body is not None:
            return Declared(own)
        for registry in reversed(self._registries):
            row = self._row(registry, name)
            if row is not None:
                return Declared(declaration(row.declaration), row.wire)
        raise MissingOperator(f"there is no operator {name!r}", hint=self._advice(name))

    def _row(self, registry: str, name: str) -> Operator | None:
        row = self._table.find(row_key(registry, name))
        if row is None:
            family = self._table.find(row_key(registry, ANY))
            return family.find(self._registry, name) if isinstance(family, Family) else None
        return row if isinstance(row, Operator) else None  # nobody calls an operator *

    def _advice(self, name: str) -> str:
        homes = sorted(key.split("/")[0] for key in self._table.names() if key.endswith(f"/{name}"))
        if homes:
            return f"it is in the registry {homes[0]}: the file wants a line 'extension tract_registry {homes[0]};'"
        near = meant(name, [key.split("/")[1] for key in self._table.names()])
        return f"did you mean {near[0]!r}?" if near else "a plugin can add it: see docs/plugins.md"


def registries(table: Table[str, Operator | Family]) -> frozenset[str]:
    """The names of all registries that anybody has rows in."""
    return frozenset(key.split("/")[0] for key in table.names())


def check_registry(name: str, table: Table[str, Operator | Family]) -> None:
    """Raises Unsupported for a registry that nobody has rows in."""
    known = registries(table)
    if name not in known:
        raise Unsupported(
            f"the registry of operators {name!r} is not installed; there are {', '.join(sorted(known))}",
            hint="a plugin can bring it: see docs/plugins.md, and 'tract plugins' for what is installed",
        )


def declaration(said: str | ast.Fragment) -> ast.Fragment:
    """What the declaration of a row says."""
    return said if isinstance(said, ast.Fragment) else _parsed(said)


@cache
def _parsed(text: str) -> ast.Fragment:
    (fragment,) = parse_fragments(text if text.lstrip().startswith("fragment") else f"fragment {text};")
    return fragment


def matched(declared: Declared, arguments: Sequence[ast.Argument], evaluate: Evaluate) -> dict[str, Value]:
    """The values of an operator's parameters. ``evaluate``: what is given for a parameter of a type.

    An argument that the operator has no parameter for is set aside with a ModelWarning: exporters give some, which the
    tract engines pass over. Raises CorruptModel for one whose name is like that of a parameter, and for other arguments
    that do not fit the declaration.
    """
    fragment, parameters = declared.fragment, declared.parameters
    found: dict[str, Value] = {}
    unknown: list[tuple[int, ast.Argument]] = []
    for place, argument in enumerate(arguments):
        name = argument.name
        if name is None:
            if place >= len(fragment.parameters):
                raise CorruptModel(f"{fragment.name} takes {len(parameters)} arguments, found {len(arguments)}")
            name = fragment.parameters[place].name
        elif name not in parameters:
            unknown.append((place, argument))
            continue
        if name in found:
            raise CorruptModel(f"{fragment.name} is given {name!r} twice")
        found[name] = evaluate(argument.value, parameters[name].type)
    if unknown:
        _by_place(fragment, unknown, found, evaluate)
    for name, parameter in parameters.items():
        if name not in found:
            if parameter.default is None:
                raise CorruptModel(f"{fragment.name} wants {name!r}, which is not given")
            found[name] = evaluate(parameter.default, parameter.type)
    return found


def _by_place(
    fragment: ast.Fragment, unknown: Sequence[tuple[int, ast.Argument]], found: dict[str, Value], evaluate: Evaluate
) -> None:
    """Take arguments whose names an operator does not have for the tensors in their places, which nothing else gives.

    The tract engines do so with operators on one tensor or two, whatever the names. Warns with ModelWarning. Others are
    set aside, or refused with CorruptModel.
    """
    missing = [one.name for one in fragment.parameters if one.name not in found and one.default is None]
    meant = {place: one.name for place, one in enumerate(fragment.parameters) if isinstance(one.type, ast.TensorOf)}
    names = [meant.get(place, "") for place, _ in unknown]
    if sorted(names) != sorted(missing) or fragment.name.startswith(PY):
        _set_aside(
            fragment.name, [str(one.name) for _, one in unknown], [one.name for one in fragment.parameters], missing
        )
        return
    for name, (_, argument) in zip(names, unknown, strict=True):
        found[name] = evaluate(argument.value, ast.TensorOf(None))
    given = ", ".join(f"{one.name!r} is taken for {name!r}" for name, (_, one) in zip(names, unknown, strict=True))
    warnings.warn(f"{fragment.name} has other parameters: {given}, by its place", ModelWarning, stacklevel=2)


def _set_aside(name: str, unknown: Sequence[str], parameters: Iterable[str], missing: Sequence[str]) -> None:
    """Warn of arguments that an operator does not have. Raises CorruptModel where one of those that it has is meant.

    ``missing``: parameters that have no value.
    """
    problem = f"{name} has no parameter {unknown[0]!r}; it has {', '.join(parameters)}"
    near = [one for given in unknown for one in meant(given, parameters)]
    if near or missing or name.startswith(PY):  # nobody but us writes those
        raise CorruptModel(problem, hint=f"did you mean {near[0]!r}?" if near else None)
    warnings.warn(f"{problem}. It is set aside", ModelWarning, stacklevel=2)
