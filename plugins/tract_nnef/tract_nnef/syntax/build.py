"""What the rules of the grammar make: the functions that grammar.lark names, each with the parts of its rule.

Those of `MADE` need nothing else. Those of `Build` know the text, too, and take ``at``, the character of it where what
they make begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import copysign, inf, isinf
from typing import Any, Final

from tract_core.errors import ModelError, VersionError
from tract_nnef.syntax.ast import (
    Argument,
    Array,
    ArrayOf,
    Assignment,
    Binary,
    Comprehension,
    Document,
    Expression,
    Fragment,
    Graph,
    Identifier,
    Invocation,
    Literal,
    Parameter,
    Primitive,
    Quantization,
    Range,
    Result,
    Select,
    Subscript,
    TensorOf,
    Tuple,
    TupleOf,
    Type,
    Unary,
)
from tract_nnef.syntax.names import is_version
from tract_nnef.syntax.refusal import refusal, shown

Body = tuple[Assignment, ...]
Generic = tuple[bool, Primitive | None]
"""Whether a fragment takes a type, and the one that it takes where none is given."""
Loop = tuple[str, Expression]
"""A variable, and what it goes through."""

PRIMITIVES: Final = {name: Primitive(name) for name in ("integer", "scalar", "logical", "string", "complex", "?")}

TRUE: Final = Literal(True)
FALSE: Final = Literal(False)
INFINITY: Final = Literal(inf)

LONGEST_NUMBER: Final = 1000
"""Digits: a number that needs more is no number that anybody means."""


TWICE: Final = "every name has one meaning: give the other one another name"


def unescaped(word: str) -> str:
    """A text in quotes without them, each character behind a backslash as it is."""
    return "\\".join(part.replace("\\", "") for part in word[1:-1].split("\\\\"))


def is_literal(value: Expression) -> bool:
    """Whether a value consists of literals, in arrays and tuples or not."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (Array, Tuple)):
            waiting += one.items
        elif not isinstance(one, Literal):
            return False
    return True


def _part(part: object) -> object:
    return part


def _one(first: object) -> list[object]:
    return [first]


def _more(before: list[object], last: object) -> list[object]:
    before.append(last)
    return before


def _named(word: str) -> Primitive:
    """The type in ``<scalar>`` or ``<? = scalar>``."""
    return PRIMITIVES[word[1:-1].rpartition("=")[2].strip()]


def _document(version: str, extensions: list[str], fragments: list[Fragment], graph: Graph) -> Document:
    texts = [text.removeprefix("extension")[:-1].strip() for text in extensions]
    return Document(version, tuple(texts), tuple(fragments), graph)


def _not_generic() -> Generic:
    return False, None


def _generic_with_default(word: str) -> Generic:
    return True, _named(word)


def _any_primitive() -> Primitive:
    return PRIMITIVES["?"]


def _tuple_of(kinds: list[Type]) -> TupleOf:
    return TupleOf(tuple(kinds))


def _text(word: str) -> Literal:
    return Literal(unescaped(word))


def _true() -> Literal:
    return TRUE


def _false() -> Literal:
    return FALSE


def _infinity() -> Literal:
    return INFINITY


def _array(items: list[Expression]) -> Array:
    return Array(tuple(items))


def _empty_tuple() -> Tuple:
    return Tuple(())


def _tuple_of_items(first: Expression, others: list[Expression]) -> Tuple:
    return Tuple((first, *others))


def _range_from(of: Expression, begin: Expression) -> Range:
    return Range(of, begin, None)


def _range_to(of: Expression, end: Expression) -> Range:
    return Range(of, None, end)


def _range_of_all(of: Expression) -> Range:
    return Range(of, None, None)


def _binary(left: Expression, op: str, right: Expression) -> Binary:
    return Binary(op, left, right)


def _loop(name: str, _: str, values: Expression) -> Loop:
    return name, values


def _comprehension(loops: list[Loop], value: Expression) -> Comprehension:
    return Comprehension(tuple(loops), None, value)


def _filtered_comprehension(loops: list[Loop], condition: Expression, value: Expression) -> Comprehension:
    return Comprehension(tuple(loops), condition, value)


def _argument(value: Expression) -> Argument:
    return Argument(None, value)


def _invocation(name: str, arguments: list[Argument]) -> Invocation:
    return Invocation(name, tuple(arguments))


def _generic_invocation(name: str, word: str, arguments: list[Argument]) -> Invocation:
    return Invocation(name, tuple(arguments), _named(word))


MADE: Final[dict[str, Callable[..., Any]]] = {
    "": _part,
    # lists
    "none": list,
    "one": _one,
    "more": _more,
    # documents and declarations
    "document": _document,
    "not_generic": _not_generic,
    "generic_with_default": _generic_with_default,
    "parameter": Parameter,
    "result": Result,
    "any_primitive": _any_primitive,
    "body": tuple,
    "array_of": ArrayOf,
    "tuple_of": _tuple_of,
    # expressions
    "text": _text,
    "true": _true,
    "false": _false,
    "infinity": _infinity,
    "array": _array,
    "empty_tuple": _empty_tuple,
    "tuple_of_items": _tuple_of_items,
    "subscript": Subscript,
    "range_from_to": Range,
    "range_from": _range_from,
    "range_to": _range_to,
    "range_of_all": _range_of_all,
    "binary": _binary,
    "select": Select,
    "loop": _loop,
    "comprehension": _comprehension,
    "filtered_comprehension": _filtered_comprehension,
    "argument": _argument,
    "named_argument": Argument,
    "invocation": _invocation,
    "generic_invocation": _generic_invocation,
}
"""What each rule makes of its parts, where it needs nothing but them."""


class Lines:
    """The lines of a text, for places that are asked for from its begin to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._counted = 0

    def of(self, at: int) -> int:
        """The line of a character that is not before the last one that was asked for, counted from 1."""
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line


class Build:
    """What the other rules make: those that may refuse a text, and those that note what it has."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = Lines(text)
        self._fragment_lines = Lines(text)  # a fragment is made after its statements, and begins before them
        self._identifiers: dict[str, Identifier] = {}
        self._numbers: dict[str, Literal] = {}
        self.arguments: dict[str, Argument] = {}
        """Those of plain statements, by what was written."""
        self._fragments: dict[str, int] = {}

    def _refused(self, at: int, problem: str, hint: str | None = None) -> ModelError:
        return refusal(self._text, at, problem, hint=hint)

    def _differ(self, at: int, names: Iterable[str], what: str) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise self._refused(at, f"the {what} {shown(name)} is there twice", TWICE)
            seen.add(name)

    def _line_of(self, at: int) -> int:
        return Lines(self._text).of(at)

    def version(self, at: int, number: str) -> str:
        """Only the first number of a version says what can be read."""
        if not is_version(number):
            problem = f"the text is of version {number[:40]} of NNEF, and 1.0 is what can be read"
            hint = "write the model again as NNEF 1.0"
            raise refusal(self._text, at, problem, kind=VersionError, hint=hint)
        return number

    def graph(self, at: int, name: str, inputs: list[str], outputs: list[str], body: Body) -> Graph:
        """Its inputs differ; an output may be there twice."""
        self._differ(at, inputs, "input")
        return Graph(name, tuple(inputs), tuple(outputs), body)

    def fragment(  # noqa: PLR0917 - the parts of the rule, in their order
        self,
        at: int,
        name: str,
        generic: Generic,
        parameters: list[Parameter],
        results: list[Result],
        body: Body | None = None,
    ) -> Fragment:
        """Fragments differ by their names, as do what one takes, and what it gives, which may be what it takes."""
        first = self._fragments.setdefault(name, at)
        if first != at:
            problem = f"the fragment {shown(name)} is there twice, first in line {self._line_of(first)}"
            raise self._refused(at, problem, TWICE)
        self._differ(at, [one.name for one in parameters], "parameter")
        self._differ(at, [one.name for one in results], "result")
        line = self._fragment_lines.of(at)
        return Fragment(name, tuple(parameters), tuple(results), body, *generic, line=line)

    declaration = fragment

    def generic(self, at: int, word: str) -> Generic:
        """Of ``<...>`` behind the name of a fragment, only ``<?>`` says that it takes a type."""
        if _named(word) is not PRIMITIVES["?"]:
            raise self._refused(at, f"found '{word}', wanted '<?>' or '<? = {word[1:-1].strip()}>'")
        return True, None

    def assignment(self, at: int, targets: Expression, value: Expression) -> Assignment:
        """It has a line. A name may be assigned to again: exporters do that, whoever reads the document warns."""
        return Assignment(targets, value, self._lines.of(at))

    def quantization(self, at: int, name: str, invocation: Invocation) -> Quantization:
        """Its arguments are literals."""
        if not all(is_literal(one.value) for one in invocation.arguments):
            raise self._refused(at, f"an argument of {shown(invocation.name)} is no literal")
        return Quantization(name, invocation, self._lines.of(at))

    def quantization_of_text(self, at: int, word: str, invocation: Invocation) -> Quantization:
        """The same, where the tensor's name is a text in quotes."""
        return self.quantization(at, unescaped(word), invocation)

    def parameter_with_default(self, at: int, name: str, kind: Type, default: Expression) -> Parameter:
        """The default is made of literals."""
        if not is_literal(default):
            raise self._refused(at, f"the default of the parameter {shown(name)} is no literal")
        return Parameter(name, kind, default)

    def primitive(self, at: int, name: str) -> Primitive:
        """A type that is one word."""
        if name not in PRIMITIVES:
            raise self._refused(at, f"found {shown(name)}, wanted a type: tensor<...>, {', '.join(PRIMITIVES)}")
        return PRIMITIVES[name]

    def tensor_of(self, at: int, name: str, word: str = "") -> TensorOf:
        """The one type with another one in angle brackets."""
        if name != "tensor":
            raise self._refused(at, f"found {shown(name)}, wanted 'tensor'")
        return TensorOf(_named(word) if word else None)

    def identifier(self, at: int, name: str) -> Identifier:
        """The same name is the same object each time."""
        held = self._identifiers.get(name)
        if held is None:
            held = self._identifiers[name] = Identifier(name)
        return held

    def number(self, at: int, word: str) -> Literal:
        """The same number is the same object each time."""
        held = self._numbers.get(word)
        if held is None:
            held = self._numbers[word] = Literal(self._value(at, word))
        return held

    def _value(self, at: int, word: str) -> int | float:
        if len(word) > LONGEST_NUMBER:
            raise self._refused(at, f"a number has {len(word)} characters, {LONGEST_NUMBER} are allowed")
        if word.isdecimal():
            value = int(word)
            if value >> 64:
                raise self._refused(at, f"{shown(word)} takes more than 64 bits", "write it with a point, as a scalar")
            return value
        value = float(word)
        if isinf(value):
            raise self._refused(at, f"{shown(word)} is beyond the range of scalars", "write infinity as inf")
        return value

    def unary(self, at: int, op: str, of: Expression) -> Unary | Literal:
        """A minus before a number that has none is part of it."""
        if op != "-" or not isinstance(of, Literal) or isinstance(of.value, (bool, str)) or copysign(1, of.value) < 0:
            return Unary(op, of)
        if isinstance(of.value, int) and of.value > 1 << 63:
            raise self._refused(at, f"-{of.value} takes more than 64 bits", "write it with a point, as a scalar")
        return Literal(-of.value)
