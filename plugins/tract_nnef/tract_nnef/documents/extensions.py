"""The lines that begin with ``extension``: what a model knows beside its graph. See `tract_nnef.writing.extensions`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast, get_args

from tract_core.dims.names import QUOTED, read_quoted
from tract_core.errors import CorruptModel, TractError
from tract_core.limits import count_node
from tract_core.model.conditions import Condition, Relation
from tract_core.model.fact import ShapeFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_nnef.documents.operators import Operators
from tract_nnef.reading.values import size_from_text
from tract_nnef.writing.extensions import ASSERTION, CONDITION, DEFINITION, NAME, NAMED, SCENARIO, SHAPE, UNNAMED

Lines = Sequence[tuple[str, str]]
"""The first word of each line, and what comes behind it."""


def split(extensions: Iterable[str]) -> Lines:
    """The lines of a document, of which each is given without the word ``extension`` and the semicolon."""
    pairs = ([*line.split(None, 1), ""][:2] for line in extensions)
    return [(word, text.strip()) for word, text in pairs]


def use_registries(operators: Operators, lines: Lines) -> None:
    """Look for operators in the registries that are named. Raises Unsupported for one that is not installed."""
    for word, text in lines:
        if word == "tract_registry":
            operators.use(text)


def declare(model: TypedModel, lines: Lines) -> None:
    """Add the symbols, then what is said of them. Raises ModelError. What has no meaning here has one to others.

    What wiring finds out is a part of facts: conditions are known from the start, as the writer relies on.
    """
    for table in (_SYMBOLS, _NAMES, _SAID):
        for word, text in lines:
            if word in table:
                _read(word, table[word], model, text)


def shapes(model: TypedModel, lines: Lines) -> dict[str, ShapeFact]:
    """The shapes of tensors that are said otherwise than wiring finds them, by the names of the tensors."""
    found: dict[str, ShapeFact] = {}
    for word, text in lines:
        if word == SHAPE:
            _read(word, _shape, model, text, found)
    return found


def forget_what_follows(model: TypedModel, count: int) -> None:
    """Of the conditions after the first ``count``, which wiring found, keep those that say something else."""
    conditions, scope = model.conditions, model.symbols
    found = list(conditions)[count:]
    conditions.rewind(count)
    conditions.review(scope)
    said = {conditions.simplified(condition, scope) for condition, _ in conditions}
    for condition, origin in found:
        if conditions.simplified(condition, scope) not in said and not conditions.answer(condition, scope):
            conditions.add(condition, origin)


def rename(model: TypedModel, lines: Lines, names: Mapping[str, OutletId]) -> None:
    """Give inputs and outputs the names that could not be written. ``names``: what the file calls them."""
    for word, text in lines:
        if word == NAME:
            _read(word, _rename, model, text, names)


def _read(word: str, add: Callable[..., object], model: TypedModel, text: str, *more: object) -> None:
    count_node()
    try:
        add(model, text, *more)
    except TractError as error:
        raise CorruptModel(error.problem, where=error.where, hint=error.hint).at(f"extension {word}") from None


def _symbol(model: TypedModel, text: str) -> None:
    model.symbols.add(read_quoted(text) if re.fullmatch(QUOTED, text) else text)


def _condition(model: TypedModel, text: str) -> None:
    left, relation, right, origin = _strings(text, 4)
    if relation not in get_args(Relation):
        raise CorruptModel(f"{relation!r:.40} is no relation of sizes; there are {', '.join(get_args(Relation))}")
    condition = Condition(size_from_text(left, model), cast("Relation", relation), size_from_text(right, model))
    model.conditions.add(condition, origin)


def _definition(model: TypedModel, text: str) -> None:
    name, size = _strings(text, 2)
    if name not in model.symbols:
        raise CorruptModel(f"the symbol {name!r:.80} is not declared")
    model.conditions.define(name, size_from_text(size, model))


def _named(model: TypedModel, text: str) -> None:
    name, size = _strings(text, 2)
    model.symbols.define(name, size_from_text(size, model))


_SYMBOLS: Final[Mapping[str, Callable[[TypedModel, str], object]]] = {"tract_symbol": _symbol}
_NAMES: Final[Mapping[str, Callable[[TypedModel, str], object]]] = {NAMED: _named}
_SAID: Final[Mapping[str, Callable[[TypedModel, str], object]]] = {
    "tract_assert": lambda model, text: model.symbols.add_assertion(text),
    ASSERTION: lambda model, text: model.symbols.add_assertion(_string(text)),
    SCENARIO: lambda model, text: model.symbols.add_scenario(_string(text)),
    UNNAMED: lambda model, text: model.symbols.unname(_string(text)),
    CONDITION: _condition,
    DEFINITION: _definition,
}


def _shape(model: TypedModel, text: str, found: dict[str, ShapeFact]) -> None:
    name, *sizes = _strings(text)
    found[name] = ShapeFact(size_from_text(size, model) for size in sizes)


def _rename(model: TypedModel, text: str, names: Mapping[str, OutletId]) -> None:
    written, name = _strings(text, 2)
    outlet = names.get(written)
    if outlet is None:
        raise CorruptModel(f"{written!r:.80} is no input and no output")
    if outlet.slot == 0 and not model.has_node(name):
        model.outlet_labels.pop(outlet, None)
        model.rename(outlet.node, name)
    else:
        model.set_label(outlet, name)


def _strings(text: str, length: int | None = None) -> list[str]:
    found = _json(text)
    parts = cast("list[Any]", found) if isinstance(found, list) else []
    if not parts or len(parts) != (length or len(parts)) or not all(isinstance(one, str) for one in parts):
        raise CorruptModel(f"a list of {length or 'several'} texts is wanted, found {text[:80]!r}")
    return parts


def _string(text: str) -> str:
    found = _json(text)
    if not isinstance(found, str):
        raise CorruptModel(f"a text in quotes is wanted, found {text[:80]!r}")
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
