"""``@frozen``: frozen dataclasses whose methods are written once, here.

The decorator of the standard library writes six methods for every class as text, and compiles them. With some hundred
classes, that was a third of the time in which a small model is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, replace
from functools import cache
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import Any, Final, TypeVar, dataclass_transform

T = TypeVar("T")

Fields = tuple[Field[Any], ...]

_MADE: Final = object()
"""The default of a parameter whose value a factory makes."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The class that ``@dataclass(frozen=True, slots=True)`` makes of ``cls``, in a tenth of the time.

    It is a dataclass to everybody: `dataclasses.fields` and `replace`, ``match``, pickles and signatures work as they
    do there, and each of the two kinds may derive from the other. Methods that ``cls`` has of its own are kept.

    Raises TypeError for a field that the constructor does not take: ``field(init=False)`` is for `dataclass`.
    """
    twin = _twin(cls)
    own = [one.name for one in fields(twin)]
    inherited: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__):
        inherited |= vars(base).get("__dataclass_fields__", {})
    twin.__dataclass_fields__ = inherited | twin.__dataclass_fields__

    body = {name: value for name, value in vars(cls).items() if name not in (*own, "__dict__", "__weakref__")}
    for name, method in _methods(fields(twin)).items():
        if body.get(name) is None:  # Python gives a class with an __eq__ of its own the __hash__ None
            body[name] = method
    body["__slots__"] = [name for name in own if name not in inherited]
    body["__dataclass_fields__"] = twin.__dataclass_fields__
    body["__dataclass_params__"] = vars(_Example)["__dataclass_params__"]
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


@dataclass(frozen=True, slots=True)
class _Example:
    """What the standard library notes about the options of this class holds for each of ours."""


def _twin(cls: type) -> Any:
    """A class with the annotations and defaults of ``cls``, and nothing else, in which the fields have been found.

    The decorator of the standard library finds them without writing a method. It cannot be asked about ``cls``
    itself: it takes no class that derives from a frozen one and is not to be frozen by it too.
    """
    annotations = get_annotations(cls)
    body = {name: value for name, value in vars(cls).items() if name in annotations}
    body |= {"__annotations__": annotations, "__module__": cls.__module__, "__doc__": cls.__doc__ or "undocumented"}
    twin: Any = dataclass(init=False, repr=False, eq=False)(type(cls.__name__, (), body))
    for one in fields(twin):
        if not one.init:
            raise TypeError(f"{cls.__qualname__}.{one.name} is no parameter of the constructor: use dataclass")
    return twin


def _methods(every: Fields) -> dict[str, Any]:
    """The methods of a class with these fields, and the names by which ``match`` takes it apart."""
    compared = _reader([one.name for one in every if one.compare])
    hashed = _reader([one.name for one in every if (one.compare if one.hash is None else one.hash)])

    def equal(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: object) -> int:
        return hash(hashed(self))

    return {
        "__init__": _Constructor(every),
        "__eq__": equal,
        "__hash__": hash_of,
        "__repr__": _repr,
        "__setattr__": _setattr,
        "__delattr__": _delattr,
        "__getstate__": _getstate,
        "__setstate__": _setstate,
        "__replace__": replace,
        "__match_args__": tuple(one.name for one in every if not one.kw_only),
    }


def _reader(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """What reads these attributes of an object, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple([getattr(thing, name) for name in names])


def replaced(thing: T, **changes: Any) -> T:
    """What `dataclasses.replace` gives for an object of a class as those here, in a third of the time."""
    for name in _parameters(thing.__class__):
        if name not in changes:
            changes[name] = getattr(thing, name)
    return thing.__class__(**changes)


@cache
def _parameters(cls: Any) -> tuple[str, ...]:
    """The names that the constructor takes."""
    return tuple(one.name for one in fields(cls))


class _Constructor:
    """``__init__`` of a class with these fields, compiled when it is first asked for: many classes make no object."""

    def __init__(self, every: Fields) -> None:
        self._fields = every

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner: Any = owner

    def __get__(self, thing: object, kind: type | None = None) -> Any:
        init = self._owner.__init__ = _constructor(self._owner, self._fields)
        return init.__get__(thing, kind)


def _constructor(owner: type, every: Fields) -> Any:
    """A function with a parameter for each field, that sets the fields and then calls ``__post_init__``."""
    scope: dict[str, Any] = {"_put": object.__setattr__, "_MADE": _MADE}
    plain, named, lines = ["self"], ["*"], ["pass"]
    for one in every:
        name, default, value = one.name, "", one.name
        if one.default_factory is not MISSING:
            scope[f"_make_{name}"] = one.default_factory
            default, value = "=_MADE", f"_make_{name}() if {name} is _MADE else {name}"
        elif one.default is not MISSING:
            scope[f"_default_{name}"] = one.default
            default = f"=_default_{name}"
        (named if one.kw_only else plain).append(name + default)
        slot = getattr(owner, name, None)
        if isinstance(slot, MemberDescriptorType):  # which is set in less time than found by its name
            scope[f"_put_{name}"] = slot.__set__
            lines.append(f"_put_{name}(self, {value})")
        else:
            lines.append(f"_put(self, {name!r}, {value})")
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(plain + named if named[1:] else plain)
    head = f"def make({', '.join(scope)}):\n def __init__({parameters}):"
    made: dict[str, Any] = {}
    exec("\n  ".join([head, *lines]) + "\n return __init__", vars(sys.modules[owner.__module__]), made)
    init = made["make"](**scope)
    init.__qualname__ = f"{owner.__qualname__}.__init__"
    init.__annotations__ = {one.name: one.type for one in every} | {"return": None}
    return init


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _setattr(self: Any, name: str, value: object) -> None:
    if _is_fixed(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    if _is_fixed(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_fixed(thing: Any, name: str) -> bool:
    """Whether an attribute is for good: all are, but those that a class which derives without a decorator adds."""
    kind: Any = thing.__class__
    return "__dataclass_fields__" in vars(kind) or name in kind.__dataclass_fields__


def _getstate(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
