"""``@frozen``: frozen dataclasses whose methods are written once, here.

The decorator of the standard library writes six methods for every class as text, and compiles them. With some hundred
classes, that was a third of the time in which a small model is loaded. Nor is the module imported here that it is in:
where nobody asks a class for its `dataclasses.fields`, nobody makes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field, field
else:
    field = None  # type checkers alone read which function says more of a field

T = TypeVar("T")

_MADE: Final = object()
"""The default of a parameter whose value a factory makes."""

MANY: Final = 16
"""How many objects of a class are made before a constructor is compiled for it, which takes as long as these do."""

_REQUIRED: Final = object()
"""In the place of a default where there is none."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The class that ``@dataclass(frozen=True, slots=True)`` makes of ``cls``, in a twentieth of the time.

    It is a dataclass to everybody: `dataclasses.fields` and `replace`, ``match``, pickles and signatures work as they
    do there, and each of the two kinds may derive from the other. Methods that ``cls`` has of its own are kept.

    Raises TypeError for a field that the constructor does not take: ``field(init=False)`` is for `dataclass`.
    """
    described = _Described(cls)
    body = {name: value for name, value in vars(cls).items() if name not in (*described.own, "__dict__", "__weakref__")}
    for name, method in _methods([*described.every.values()]).items():
        if body.get(name) is None:  # Python gives a class with an __eq__ of its own the __hash__ None
            body[name] = method
    body["__slots__"] = [name for name in described.own if name not in described.inherited]
    body["__dataclass_fields__"] = described
    body["__dataclass_params__"] = _PARAMETERS
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


class _One:
    """A field, as far as methods need to know it. ``default``, ``factory``: `_REQUIRED` for none."""

    __slots__ = ("compare", "default", "factory", "hash", "kw_only", "name", "repr", "type")

    def __init__(self, name: str, kind: Any, default: Any = _REQUIRED, said: Field[Any] | None = None) -> None:
        """``said``: what `dataclasses.field` returned, or what the standard library made of it."""
        self.name, self.type, self.default = name, kind, default
        self.factory: Any = _REQUIRED
        self.repr = self.compare = self.hash = True
        self.kw_only = False
        if said is not None:
            from dataclasses import MISSING

            self.default = _REQUIRED if said.default is MISSING else said.default
            self.factory = _REQUIRED if said.default_factory is MISSING else said.default_factory
            self.repr, self.compare, self.kw_only = said.repr, said.compare, said.kw_only is True
            self.hash = said.compare if said.hash is None else said.hash


class _Described:
    """The fields of a class: in its ``__dataclass_fields__``, which are made when somebody asks for them.

    ``inherited``, ``own``, ``every``: those of its bases, its own, and both, by their names, in order.
    """

    def __init__(self, cls: type) -> None:
        self._annotations = get_annotations(cls)
        self._values = {name: value for name, value in vars(cls).items() if name in self._annotations}
        self._owner = cls
        self._made: dict[str, Field[Any]] | None = None
        self.inherited: dict[str, _One] = {}
        for base in reversed(cls.__mro__[1:]):
            self.inherited |= _own_fields(base) or {}
        plain = _plain_fields(cls, self._annotations)
        self.own = self._looked_at() if plain is None else plain
        self.every = self.inherited | self.own

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def __get__(self, thing: object, kind: type | None = None) -> dict[str, Field[Any]]:
        """The fields, as `dataclasses` has them."""
        if self._made is not None:
            return self._made
        made: dict[str, Field[Any]] = {}
        base: Any
        for base in reversed(self._owner.__mro__[1:]):
            made |= base.__dataclass_fields__ if "__dataclass_fields__" in vars(base) else {}
        made |= self._twin().__dataclass_fields__
        self._made = made
        return made

    def _twin(self) -> Any:
        """A class with the same annotations and defaults, and nothing else, in which the fields have been found.

        The decorator of the standard library finds them without writing a method. It cannot be asked about the class
        itself: it takes no class that derives from a frozen one and is not to be frozen by it too.
        """
        from dataclasses import dataclass

        of = self._owner
        body = {**self._values, "__annotations__": self._annotations, "__module__": of.__module__, "__doc__": "a twin"}
        return dataclass(init=False, repr=False, eq=False)(type(of.__name__, (), body))

    def _looked_at(self) -> dict[str, _One]:
        """The own fields, as the standard library finds them. Raises what that does."""
        from dataclasses import fields

        found = fields(self._twin())
        for one in found:
            if not one.init:
                name = f"{self._owner.__qualname__}.{one.name}"
                raise TypeError(f"{name} is no parameter of the constructor: use dataclass")
        return {one.name: _One(one.name, one.type, said=one) for one in found}


def _plain_fields(cls: type, annotations: Mapping[str, Any]) -> dict[str, _One] | None:
    """The own fields of a class; ``None`` where the standard library has to look at one."""
    names, values = vars(sys.modules[cls.__module__]), vars(cls)
    found: dict[str, _One] = {}
    for name, kind in annotations.items():
        if not isinstance(kind, str):
            return None
        head, value = kind.partition("[")[0].strip(), values.get(name, _REQUIRED)
        meant = names.get(head)
        if meant is ClassVar:
            continue
        if head.endswith(_SPECIAL) or getattr(meant, "__module__", "") == "dataclasses":
            return None
        if value.__class__.__module__ != "dataclasses":
            if value.__class__.__hash__ is None or hasattr(value, "__get__"):
                return None
            found[name] = _One(name, kind, value)
        elif value.init:
            found[name] = _One(name, kind, said=value)
        else:
            return None
    return found


_SPECIAL: Final = (".ClassVar", ".InitVar", ".KW_ONLY")
"""How annotations end that make none a field, or others."""


class _Parameters:
    """``__dataclass_params__``: what the standard library notes about the options of `frozen`, when it is asked for."""

    def __get__(self, thing: object, kind: type | None = None) -> Any:
        return _parameters()


_PARAMETERS: Final = _Parameters()


@cache
def _parameters() -> Any:
    from dataclasses import dataclass

    @dataclass(frozen=True, slots=True)
    class Example:
        """Its options are ours."""

    return vars(Example)["__dataclass_params__"]


def _own_fields(kind: type) -> dict[str, _One] | None:
    """The fields of a class, with those that it inherits, by their names; ``None`` where a decorator made none."""
    found = vars(kind).get("__dataclass_fields__")
    if found is None or isinstance(found, _Described):
        return found and found.every
    from dataclasses import fields

    return {one.name: _One(one.name, one.type, said=one) for one in fields(kind)}


@cache
def _fields_of(kind: type) -> tuple[_One, ...]:
    """The fields of a class, or of that from which it derives without a decorator."""
    every = next(found for base in kind.__mro__ if (found := _own_fields(base)) is not None)
    return tuple(every.values())


@cache
def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in _fields_of(kind))


def _methods(every: Sequence[_One]) -> dict[str, Any]:
    """The methods of a class with these fields, and the names by which ``match`` takes it apart."""
    compared = _reader([one.name for one in every if one.compare])
    hashed = _reader([one.name for one in every if one.hash])

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
        "__replace__": _replace,
        "__match_args__": tuple(one.name for one in every if not one.kw_only),
    }


def _reader(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """What reads these attributes of an object, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple([getattr(thing, name) for name in names])


def replaced(thing: T, **changes: Any) -> T:
    """What `dataclasses.replace` gives for an object of a class as those here, in a third of the time."""
    kind: Any = thing.__class__
    for name in _names_of(kind):
        if name not in changes:
            changes[name] = getattr(thing, name)
    return kind(**changes)


class _Constructor:
    """``__init__`` of a class with these fields, compiled for the first of many objects: most classes make few."""

    def __init__(self, every: Sequence[_One]) -> None:
        self._fields, self._by_hand = every, MANY
        self._names = {one.name for one in every}
        self._in_order = [one.name for one in every if not one.kw_only]
        self._factories = {one.name: one.factory for one in every if one.factory is not _REQUIRED}
        self._defaults = {one.name: one.default for one in every if one.default is not _REQUIRED}
        self._defaults |= dict.fromkeys(self._factories, _MADE)

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner: Any = owner

    def __get__(self, thing: object, kind: type | None = None) -> Any:
        if thing is not None and self._by_hand:
            self._by_hand -= 1
            return partial(self._fill, thing)
        return self._compiled().__get__(thing, kind)

    def _compiled(self) -> Any:
        init = self._owner.__init__ = _constructor(self._owner, self._fields)
        return init

    def _fill(self, thing: Any, /, *given: Any, **named: Any) -> None:
        """Set the fields of an object. What the constructor does not take, it has to refuse itself."""
        order = self._in_order
        values: dict[str, Any] = self._defaults | dict(zip(order, given, strict=False)) | named
        twice = len(given) > len(order) or not named.keys().isdisjoint(order[: len(given)])
        if twice or values.keys() != self._names:
            self._compiled()(thing, *given, **named)
            return
        for name, factory in self._factories.items():
            values[name] = factory() if values[name] is _MADE else values[name]
        for name, value in values.items():
            object.__setattr__(thing, name, value)
        if hasattr(thing, "__post_init__"):
            thing.__post_init__()


def _constructor(owner: type, every: Iterable[_One]) -> Any:
    """A function with a parameter for each field, that sets the fields and then calls ``__post_init__``."""
    scope: dict[str, Any] = {"_put": object.__setattr__, "_MADE": _MADE}
    plain, named, lines = ["self"], ["*"], ["pass"]
    for one in every:
        name, default, value = one.name, "", one.name
        if one.factory is not _REQUIRED:
            scope[f"_make_{name}"] = one.factory
            default, value = "=_MADE", f"_make_{name}() if {name} is _MADE else {name}"
        elif one.default is not _REQUIRED:
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
    shown = [f"{one.name}={getattr(self, one.name)!r}" for one in _fields_of(self.__class__) if one.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _setattr(self: Any, name: str, value: object) -> None:
    if _is_fixed(self, name):
        raise _frozen_instance(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    if _is_fixed(self, name):
        raise _frozen_instance(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _frozen_instance(problem: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(problem)


def _is_fixed(thing: Any, name: str) -> bool:
    """Whether an attribute is for good: all are, but those that a class which derives without a decorator adds."""
    kind: Any = thing.__class__
    return "__dataclass_fields__" in vars(kind) or name in _names_of(kind)


def _getstate(self: Any) -> list[object]:
    return [getattr(self, name) for name in _names_of(self.__class__)]


def _setstate(self: Any, state: list[object]) -> None:
    for name, value in zip(_names_of(self.__class__), state, strict=True):
        object.__setattr__(self, name, value)


def _replace(self: Any, /, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(self, **changes)
