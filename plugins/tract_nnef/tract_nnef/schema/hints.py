"""From type hints to what fields may hold, and the fields of dataclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from tract_core.data import Constant, DatumType, DType, SymbolicArray
from tract_core.dims import TDim
from tract_core.errors import CorruptModel, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.same import content
from tract_core.model.typed import TypedModel
from tract_nnef.reading.values import Value
from tract_nnef.schema.kinds import (
    FLAG,
    MARKED,
    TEXT,
    Body,
    Choice,
    ElementType,
    Few,
    Fixed,
    Float,
    HintKind,
    Home,
    Integer,
    Many,
    Member,
    Nothing,
    OneOf,
    Size,
    Sizes,
    ValueSource,
)
from tract_nnef.syntax import ast
from tract_nnef.syntax.names import plain_name

_KINDS: Final[Mapping[Any, HintKind]] = {
    bool: FLAG,
    int: Integer(),
    float: Float(),
    str: TEXT,
    NoneType: Nothing(),
    TDim: Size(),
    DatumType: ElementType(),
    Constant: Fixed(),
    SymbolicArray: Sizes(),
    TypedModel: Body(),
}


@cache
def kind_of(hint: Any) -> HintKind:
    """How values of a type hint are spelled. Raises Unsupported for a hint that does not say what a value may be."""
    hint = getattr(hint, "__value__", hint)  # of a `type` statement
    found = _KINDS.get(hint)
    if found is not None:
        return found
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is Literal:
        return Choice(arguments, _union([type(one) for one in arguments]))
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is ...):
        return Few(*[kind_of(one) for one in arguments])
    if origin in (tuple, frozenset):
        return Many(cast("Any", origin), kind_of(arguments[0]), origin.__name__)
    if isinstance(hint, type):
        return _class(cast("Any", hint))
    raise Unsupported(f"the type hint {hint} does not say what a file may hold")


def _union(members: Sequence[Any]) -> HintKind:
    kinds = [kind_of(one) for one in dict.fromkeys(members) if one is not int or TDim not in members]
    return kinds[0] if len(kinds) == 1 else OneOf(*kinds)


def _class(hint: Any) -> HintKind:
    if issubclass(hint, Enum):
        return Member(hint)
    if is_dataclass(hint):
        return Record(cast("type", hint))
    bases = [base for base in getattr(hint, "__orig_bases__", ()) if get_origin(base) is tuple]
    if bases:
        return Many(hint, kind_of(get_args(bases[0])[0]), hint.__name__)
    return Derived(hint)


@frozen
class Entry:
    """One field of a class: its name in Python and in a document, and what it holds."""

    field: Field[Any]
    name: str
    kind: HintKind

    def is_default(self, value: object) -> bool:
        """Whether a value is, to the bit, what the field has where nobody says anything."""
        made = self._default()
        return made is not MISSING and content(made) == content(value)

    def _default(self) -> Any:
        return self.field.default if self.field.default_factory is MISSING else self.field.default_factory()

    def write(self, value: object, home: Home) -> ast.Expression:
        """The value of the field. Raises Unsupported, with the field's name."""
        try:
            return self.kind.write(value, home)
        except Unsupported as error:
            raise Unsupported(f"{self.field.name}: {error.problem}", where=error.where, hint=error.hint) from None

    def read(self, found: Value, source: ValueSource) -> Any:
        """The value of the field. Raises ModelError, with the field's name."""
        try:
            return self.kind.read(found, source)
        except TractError as error:
            raise type(error)(f"{self.name}: {error.problem}", where=error.where, hint=error.hint) from None

    @property
    def optional(self) -> bool:
        """Whether it may be left out."""
        return self._default() is not MISSING


@cache
def entries(kind: type) -> tuple[Entry, ...]:
    """The fields that the constructor of a dataclass takes. Raises Unsupported where a type hint says too little."""
    try:
        hints = get_type_hints(kind)
    except Exception as error:  # hints are code of others, which may name what is not there
        raise Unsupported(f"the type hints of {kind.__qualname__} cannot be read: {error}") from None
    found: list[Entry] = []
    for field in fields(kind):
        if field.init:
            try:
                found.append(Entry(field, plain_name(field.name), kind_of(hints[field.name])))
            except Unsupported as error:
                raise Unsupported(f"{field.name}: {error.problem}", hint=error.hint) from None
    if len({entry.name for entry in found}) < len(found):
        raise Unsupported(f"two fields of {kind.__qualname__} have the same name in a file")
    return tuple(found)


def written_fields(value: Any, home: Home) -> list[tuple[str, ast.Expression]]:
    """The fields of a dataclass's object that are not what they are by default. Raises Unsupported."""
    found = ((entry, getattr(value, entry.field.name)) for entry in entries(value.__class__))
    return [(entry.name, entry.write(held, home)) for entry, held in found if not entry.is_default(held)]


def made(kind: type, given: Mapping[str, Value], source: ValueSource) -> Any:
    """An object of a dataclass, from the values of its fields. Raises ModelError, which does not name the class."""
    known = {entry.name: entry for entry in entries(kind)}
    unknown = [name for name in given if name not in known]
    missing = [name for name, entry in known.items() if name not in given and not entry.optional]
    if unknown or missing:
        problem = f"there is no field {unknown[0]!r}" if unknown else f"the field {missing[0]!r} is not there"
        raise CorruptModel(f"{problem}; there are {', '.join(known) or 'none'}")
    values = {known[name].field.name: known[name].read(found, source) for name, found in given.items()}
    try:
        return kind(**values)
    except TractError as error:
        raise CorruptModel(error.problem, hint=error.hint) from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CorruptModel(f"its fields do not fit: {error}") from None


class Record(HintKind):
    """A dataclass: an array of pairs, each the name of a field and its value."""

    forms = frozenset({"array"})
    _pairs = Many(list, MARKED)

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self.title, self.name = kind.__name__, f"the fields of {kind.__name__}"

    def _holds(self, value: object) -> bool:
        return value.__class__ is self._kind

    def _write(self, value: Any, home: Home) -> ast.Expression:
        pairs = written_fields(value, home)
        return ast.Array(tuple([ast.Tuple((ast.Literal(name), written)) for name, written in pairs]))

    def _read(self, found: Any, source: ValueSource) -> Any:
        pairs = self._pairs.read(found, source)
        given = dict(cast("list[tuple[str, Value]]", pairs))
        if len(given) < len(pairs):
            raise CorruptModel(f"{self.title}: a field is given twice")
        try:
            return made(self._kind, given, source)
        except TractError as error:
            raise type(error)(f"{self.title}: {error.problem}", where=error.where, hint=error.hint) from None


class Derived(HintKind):
    """A class that is no dataclass: one of the dataclasses that derive from it, as ``("Explicit", [...])``."""

    forms = frozenset({"tuple"})

    def __init__(self, base: type) -> None:
        if base in (object, Any):
            raise Unsupported(f"the type hint {base.__name__} does not say what a file may hold")
        self._base, self.title, self.name = base, base.__name__, f"a {base.__name__}"

    def _holds(self, value: object) -> bool:
        return value.__class__ in self._kinds().values()

    def _kinds(self) -> Mapping[str, type]:
        """The classes by name. Those of modules that were not imported are not known."""
        found, pending = dict[str, type](), [self._base]
        while pending:
            derived = pending.pop().__subclasses__()
            pending += derived
            found.update((kind.__name__, kind) for kind in derived if is_dataclass(kind))
        return found

    def _write(self, value: Any, home: Home) -> ast.Expression:
        kind = value.__class__
        return ast.Tuple((ast.Literal(kind.__name__), Record(kind).write(value, home)))

    def _read(self, found: Any, source: ValueSource) -> Any:
        title, fields = MARKED.read(found, source)
        kind = self._kinds().get(title)
        if kind is None:
            raise CorruptModel(f"{self.name} is wanted, found {title!r:.80}")
        return Record(kind).read(fields, source)


DTYPE: Final = kind_of(DType)
"""Any element type."""
