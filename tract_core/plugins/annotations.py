"""Whether values are of the types that fields are annotated with: what comes from JSON may be anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

_NUMBERS: Final[dict[Any, Any]] = {int: Integral, float: Real}


def hints_of(kind: type[Any]) -> dict[str, Any]:
    """The types of the fields of a class; none where they are names that only a type checker knows."""
    try:
        return get_type_hints(kind)
    except NameError:
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, with all that is in a list.

    True is no number, and a text stands for a list of one. What is in a mapping, whoever takes it checks.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        items: Any = (value,) if isinstance(value, str) else value
        of_list = isinstance(items, (list, tuple))
        return of_list and (not parts or all(map(partial(fits, hint=parts[0]), cast("Sequence[Any]", items))))
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    return not isinstance(hint, type) or hint is Any or isinstance(value, hint)


_NAMES: Final[dict[Any, str]] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    NoneType: "nothing",
}
_MANY: Final[dict[Any, str]] = {bool: "booleans", int: "integers", float: "numbers", str: "texts"}


def wanted(hint: Any) -> str:
    """A type, in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(wanted(part) for part in parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "{name: value}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a list of {_MANY.get(parts[0], 'values')}" if parts else "a list"
    return _NAMES.get(hint) or f"a {getattr(hint, '__name__', hint)}"
