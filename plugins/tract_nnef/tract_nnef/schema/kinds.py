"""What a field may hold, by its type hint: how values are written in a document, and read again.

Values are spelled as the values that documents have anyway: numbers, sizes, texts, truth values, arrays and tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from math import isnan
from typing import Any, Final, Protocol, cast

import numpy as np

from tract_core.data import Constant, DatumType, SymbolicArray
from tract_core.data.stored import checked_shape
from tract_core.dims import TDim
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.limits import limits_now
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_nnef.archive.tensors import MAX_RANK
from tract_nnef.reading import values
from tract_nnef.reading.values import Value, shown
from tract_nnef.syntax import ast
from tract_nnef.writing.expressions import MOST_INLINE, constant_expression, express, nested

_ANY: Final = ast.Primitive("?")
_FEWEST: Final = -(1 << 63)
_MOST: Final = (1 << 64) - 1
"""The whole numbers that a document can say."""


class Home(Protocol):
    """The document that values are written to."""

    def hold(self, wanted: str, value: Constant) -> str:
        """Keep a tensor beside the text, and return its label."""
        ...

    def body(self, model: TypedModel, wanted: str) -> tuple[str, Sequence[str], Sequence[tuple[str, str]]]:
        """Write a model as a fragment, and return what `ValueSource.body` makes the model of."""
        ...


class ValueSource(Protocol):
    """The document that values are read from."""

    def tensor(self, label: str) -> Array:
        """The tensor of a label."""
        ...

    def body(self, name: str, lines: Sequence[str], properties: Iterable[tuple[str, str]]) -> TypedModel:
        """The model of a fragment."""
        ...


class HintKind:
    """How the values of one type hint are spelled.

    ``name``: what messages call it. ``forms``: what its values look like in a document, see `form_of`; where two kinds
    of a union share one, their titles tell them apart. ``type``: what a declaration says of it.
    """

    name: str = ""
    title: str = ""
    forms: frozenset[str] = frozenset()
    type: ast.Type = _ANY

    def holds(self, value: object) -> bool:
        """Whether a value is of this kind."""
        return self._holds(value)

    def write(self, value: Any, home: Home) -> ast.Expression:
        """A value that is of this kind, as an expression. Raises Unsupported for one that is not."""
        if not self._holds(value):
            raise Unsupported(f"it is {value!r:.80}, a {type(value).__name__}; its type hint says {self.name}")
        return self._write(value, home)

    def read(self, found: Value, source: ValueSource) -> Any:
        """What an expression stands for. Raises ModelError for something else."""
        if form_of(found) not in self.forms:
            raise self.wrong(found)
        return self._read(found, source)

    def wrong(self, found: Value) -> CorruptModel:
        """The error for something else than this kind."""
        return CorruptModel(f"{self.name} is wanted, found {shown(found)}")

    def _holds(self, value: object) -> bool:
        raise NotImplementedError

    def _write(self, value: Any, home: Home) -> ast.Expression:
        """The expression for a value of this kind: by default, that of the value itself."""
        return express(value)

    def _read(self, found: Any, source: ValueSource) -> Any:
        """The value for what looks like one of this kind: by default, it is one."""
        return found


def form_of(found: Value) -> str:
    """What a value of a document looks like."""
    match found:
        case OutletId():
            return "tensor"
        case bool():
            return "flag"
        case int() | TDim():
            return "size"
        case float():
            return "float"
        case str():
            return "text"
        case list():
            return "array"
        case _:
            return "tuple" if found else "none"


class PlainKind(HintKind):
    """Values of one class that a document has as they are."""

    def __init__(self, kind: type, name: str, form: str, said: str) -> None:
        self._kind, self.title, self.name = kind, kind.__name__, name
        self.forms, self.type = frozenset({form}), ast.Primitive(said)

    def _holds(self, value: object) -> bool:
        return isinstance(value, self._kind)


FLAG: Final = PlainKind(bool, "true or false", "flag", "logical")
TEXT: Final = PlainKind(str, "a text", "text", "string")


class Integer(HintKind):
    """``int``"""

    title, name = "int", "a whole number"
    forms, type = frozenset({"size"}), ast.Primitive("integer")

    def _holds(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def _read(self, found: Any, source: ValueSource) -> Any:
        if not isinstance(found, int):
            raise self.wrong(found)
        if not _FEWEST <= found <= _MOST:
            raise CorruptModel(f"{self.name} is wanted, found one of more than 64 bits")
        return found


class Size(Integer):
    """``Dim``"""

    title, name = "Dim", "a size"

    def _holds(self, value: object) -> bool:
        return isinstance(value, TDim) or super()._holds(value)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        return nested(value, pairs=False)  # an operator would give a tensor

    def _read(self, found: Any, source: ValueSource) -> Any:
        return found if isinstance(found, TDim) else super()._read(found, source)


class Float(HintKind):
    """``float``; a whole number stays one. What is no number is the text ``nan``."""

    title, name = "float", "a number"
    forms, type = frozenset({"size", "float", "text"}), ast.Primitive("scalar")

    def _holds(self, value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        return ast.Literal("nan" if isnan(value) else value)

    def _read(self, found: Any, source: ValueSource) -> Any:
        if found == "nan":
            return float("nan")
        if not self._holds(found):
            raise self.wrong(found)
        return found


class Nothing(HintKind):
    """``None``, which is the empty tuple."""

    title = "None"
    name, forms = "()", frozenset({"none"})

    def _holds(self, value: object) -> bool:
        return value is None

    def _write(self, value: Any, home: Home) -> ast.Expression:
        return ast.Tuple(())

    def _read(self, found: Any, source: ValueSource) -> Any:
        return None


class ElementType(HintKind):
    """``DatumType``: the name of an element type."""

    title, name = "DatumType", "the name of an element type"
    forms, type = frozenset({"text"}), ast.Primitive("string")

    def _holds(self, value: object) -> bool:
        return isinstance(value, DatumType)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        return ast.Literal(value.short)

    def _read(self, found: Any, source: ValueSource) -> Any:
        try:
            return DatumType.parse(found)
        except FactError as error:
            raise CorruptModel(error.problem) from None


class Member(HintKind):
    """An enum, by the name of its member."""

    forms, type = frozenset({"text"}), ast.Primitive("string")

    def __init__(self, enum: type[Enum]) -> None:
        self._enum, self.title = enum, enum.__name__
        self.name = f"one of {', '.join(enum.__members__)}"

    def _holds(self, value: object) -> bool:
        return isinstance(value, self._enum)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        return ast.Literal(value.name)

    def _read(self, found: Any, source: ValueSource) -> Any:
        member = self._enum.__members__.get(found)
        if member is None:
            raise self.wrong(found)
        return member


class Choice(HintKind):
    """``Literal[...]``"""

    def __init__(self, allowed: Sequence[object], kind: HintKind) -> None:
        self._allowed, self._kind = {(one.__class__, one) for one in allowed}, kind
        self.name = f"one of {', '.join(map(repr, allowed))}"
        self.title, self.forms, self.type = kind.title, kind.forms, kind.type

    def _holds(self, value: object) -> bool:
        return (value.__class__, value) in self._allowed

    def _write(self, value: Any, home: Home) -> ast.Expression:
        return self._kind.write(value, home)

    def _read(self, found: Any, source: ValueSource) -> Any:
        value = self._kind.read(found, source)
        if not self._holds(value):
            raise self.wrong(found)
        return value


class Many(HintKind):
    """``tuple[x, ...]``, a class that is one, or ``frozenset[x]``: an array."""

    forms = frozenset({"array"})

    def __init__(self, kind: Callable[[Sequence[Any]], Any], item: HintKind, title: str = "tuple") -> None:
        self._kind, self._item, self.title = kind, item, title
        self.name, self.type = f"an array, each {item.name}", ast.ArrayOf(item.type)

    def _holds(self, value: object) -> bool:
        return value.__class__ is self._kind

    def _write(self, value: Any, home: Home) -> ast.Expression:
        items = [self._item.write(one, home) for one in value]
        return ast.Array(tuple(sorted(items, key=repr) if self._kind is frozenset else items))

    def _read(self, found: Any, source: ValueSource) -> Any:
        return self._kind([self._item.read(one, source) for one in found])


class Few(HintKind):
    """``tuple[x, y]``, a tuple."""

    title = "tuple"

    def __init__(self, *items: HintKind) -> None:
        self._items, self.forms = items, frozenset({"tuple" if items else "none"})
        self.name = f"a tuple of {', '.join(one.name for one in items)}"
        self.type = ast.TupleOf(tuple(one.type for one in items)) if items else _ANY

    def _holds(self, value: object) -> bool:
        return isinstance(value, tuple) and len(cast("tuple[object, ...]", value)) == len(self._items)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        pairs = zip(self._items, value, strict=True)
        return ast.Tuple(tuple([kind.write(one, home) for kind, one in pairs]))

    def _read(self, found: Any, source: ValueSource) -> Any:
        if len(found) != len(self._items):
            raise self.wrong(found)
        return tuple([kind.read(one, source) for kind, one in zip(self._items, found, strict=True)])


class Fixed(HintKind):
    """``Constant``: the label of a tensor, or its elements, where they are few and of f32.

    One of more axes than a tensor file can have is an array: the label of its elements in one row, and its shape.
    """

    title, name = "Constant", "a constant"
    forms = frozenset({"size", "float", "text", "array"})
    _shape = Many(tuple, Integer())

    def _holds(self, value: object) -> bool:
        return isinstance(value, Constant)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        array = value.array
        if value.datum_type is DatumType.F32 and array.size <= MOST_INLINE:
            written = constant_expression(value)
            if written is not None:
                return written
        if array.ndim <= MAX_RANK:
            return ast.Literal(home.hold("constant", value))
        label = home.hold("constant", Constant(array.reshape(-1)))
        return express([label, list(array.shape)])

    def _read(self, found: Any, source: ValueSource) -> Any:
        if isinstance(found, str):
            return Constant(source.tensor(found))
        parts = cast("list[Value]", found if isinstance(found, list) else [])
        if len(parts) == 2 and isinstance(parts[0], str):
            return Constant(_reshaped(source.tensor(parts[0]), self._shape.read(parts[1], source)))
        held = values.literal(cast("Value", found), DatumType.F32)
        if not isinstance(held, np.ndarray):
            raise self.wrong(cast("Value", found))
        return Constant(held)


class Sizes(HintKind):
    """``SymbolicArray``: its shape, and its sizes in row-major order."""

    title, name = "SymbolicArray", "sizes, as ([shape], [sizes])"
    forms = frozenset({"tuple"})
    _parts = Few(Many(tuple, Integer()), Many(tuple, Size()))

    def _holds(self, value: object) -> bool:
        return isinstance(value, SymbolicArray)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        return self._parts.write((value.array.shape, value.dims), home)

    def _read(self, found: Any, source: ValueSource) -> Any:
        shape, dims = self._parts.read(found, source)
        return SymbolicArray(_reshaped(SymbolicArray.of(dims).array, shape))


def _reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    shape = checked_shape(shape, limits_now())
    try:
        return array.reshape(shape)
    except ValueError:
        raise CorruptModel(f"{array.size} elements are no tensor of shape {list(shape)}") from None


class Body(HintKind):
    """``TypedModel``: the name of a fragment, its extension lines, and its properties: names and labels of tensors."""

    title, name = "TypedModel", "a body, as (fragment, [extensions], [properties])"
    forms = frozenset({"tuple"})
    _parts = Few(TEXT, Many(tuple, TEXT), Many(tuple, Few(TEXT, TEXT)))

    def _holds(self, value: object) -> bool:
        return isinstance(value, TypedModel)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        name, lines, properties = home.body(value, "body")
        return self._parts.write((name, tuple(lines), tuple(properties)), home)

    def _read(self, found: Any, source: ValueSource) -> Any:
        return source.body(*self._parts.read(found, source))


class OneOf(HintKind):
    """A union. What two members may look like has the name of the member in front: ``("PadConstant", [...])``."""

    def __init__(self, *members: HintKind) -> None:
        forms = [form for one in members for form in one.forms]
        shared = {form for form in forms if forms.count(form) > 1}
        if shared:
            shared.add("tuple")  # what has a name in front is a tuple itself
        marked = [one for one in members if one.forms & shared]
        self._marked = {one.title: one for one in marked}
        if len(self._marked) < len(marked):
            raise Unsupported(f"two of its types are called {', '.join(sorted(self._marked))}")
        self._plain = {form: one for one in members if one not in marked for form in one.forms}
        self._members = members
        self.title = self.name = ", or ".join(one.name for one in members)
        self.forms = frozenset(self._plain) | (frozenset({"tuple"}) if marked else frozenset[str]())

    def _holds(self, value: object) -> bool:
        return any(one.holds(value) for one in self._members)

    def _write(self, value: Any, home: Home) -> ast.Expression:
        member = next(one for one in self._members if one.holds(value))
        written = member.write(value, home)
        marked = self._marked.get(member.title) is member
        return ast.Tuple((ast.Literal(member.title), written)) if marked else written

    def _read(self, found: Any, source: ValueSource) -> Any:
        form = form_of(found)
        if form != "tuple" or not self._marked:
            return self._plain[form].read(found, source)
        title, value = MARKED.read(found, source)
        if title not in self._marked:
            raise CorruptModel(f"one of {', '.join(self._marked)} is wanted, found {title!r:.80}")
        return self._marked[title].read(value, source)


class Whatever(HintKind):
    """Any value of a document, as it is."""

    def read(self, found: Value, source: ValueSource) -> Any:
        """The value itself."""
        return found


MARKED: Final = Few(TEXT, Whatever())
"""A name, and what that says how to read."""
