"""What an operator holds in its fields, at any depth: one walk for everybody who wants to know.

Fields hold numbers, texts, sizes, constants, facts, types and models, in tuples, lists, dictionaries, sets and
dataclasses. Containers are entered; whatever else holds several things is refused, as what is in it would be
overlooked: an operator with a symbol in it would run without the symbol's value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from tract_core.errors import FactError

T = TypeVar("T")

_PLAIN: Final = (str, bytes, int, float, complex, bool, type(None), range, np.generic)
"""Values that hold nothing, though some of them have a length."""


_Parts = Callable[[Any], Sequence[Any]]
_Again = Callable[[Any, Sequence[Any]], Any]


class _Kind(NamedTuple):
    """How values of one class are taken apart, and put together again from other parts."""

    parts: _Parts
    again: _Again


def leaves(value: object, whole: tuple[type, ...] = ()) -> list[Any]:
    """Every value inside ``value`` that holds no others, in order. Those of the classes ``whole`` are not entered.

    Raises FactError for a container that is none of those above.
    """
    found: list[Any] = []
    _gather(value, whole, found)
    return found


def _gather(value: object, whole: tuple[type, ...], found: list[Any]) -> None:
    kind = _kind(value.__class__)
    if kind is None or isinstance(value, whole):
        found.append(value)
        return
    for part in kind.parts(value):
        _gather(part, whole, found)


def changed(value: T, change: Callable[[Any], Any], whole: tuple[type, ...] = ()) -> T:
    """``value`` with every leaf replaced by ``change`` of it; the very same object where each stays the same object.

    ``whole``, and what is raised: as for `leaves`.
    """
    kind = _kind(value.__class__)
    if kind is None or isinstance(value, whole):
        return change(value)
    before = kind.parts(value)
    after = [changed(part, change, whole) for part in before]
    for new, old in zip(after, before, strict=True):
        if new is not old:
            return kind.again(value, after)
    return value


def parts_of(value: object) -> Sequence[Any] | None:
    """What a value holds directly, ``None`` for a leaf. A mapping holds pairs. Raises FactError as `leaves` does."""
    kind = _kind(type(value))
    return None if kind is None else kind.parts(value)


def field_names(value: object) -> tuple[str, ...]:
    """The fields of a dataclass's object that make it what it is, in order: those that its constructor takes."""
    return _names(type(value))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.init)


@cache
def _kind(kind: Any) -> _Kind | None:
    """How values of a class are taken apart; ``None`` for those that hold no others."""
    if issubclass(kind, _PLAIN):
        return None
    if is_dataclass(kind):
        return _Kind(_reader(_names(kind)), _replaced)
    if issubclass(kind, tuple):
        return _Kind(tuple, _tuple_of)
    if kind in (list, set, frozenset):
        return _Kind(_elements, _collection_of)
    if kind in (dict, MappingProxyType):
        return _Kind(_items, _mapping_of)
    if issubclass(kind, Collection):
        raise FactError(
            f"an operator holds a {kind.__module__}.{kind.__qualname__}, into which nobody looks",
            hint="use a tuple, list, dictionary, set or dataclass; for an array, tract_core.data.Constant",
        )
    return None


def _reader(names: tuple[str, ...]) -> _Parts:
    """What reads these attributes of an object."""
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple([getattr(value, name) for name in names])


def _replaced(value: Any, parts: Sequence[Any]) -> Any:
    return replace(value, **dict(zip(field_names(value), parts, strict=True)))


def _elements(value: Any) -> list[Any]:
    return list(value)


def _tuple_of(value: Any, parts: Sequence[Any]) -> Any:
    return value._make(parts) if hasattr(value, "_make") else value.__class__(parts)  # a named tuple, or a plain one


def _collection_of(value: Any, parts: Sequence[Any]) -> Any:
    return value.__class__(parts)


def _items(value: Any) -> list[Any]:
    return list(value.items())


def _mapping_of(value: Any, parts: Sequence[Any]) -> Any:
    return value.__class__(dict(parts))
