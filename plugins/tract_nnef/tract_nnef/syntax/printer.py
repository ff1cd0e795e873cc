"""From what NNEF says to its text, in the layout that the established writer has: a statement takes one line.

What is printed parses to what was given. What has no text raises Unsupported: a name that NNEF cannot write (unless
names ``i"any text"`` are allowed, with ``extended=True``), NaN, an integer beyond 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import isinf, isnan
from typing import Any, Final

from tract_core.errors import LimitExceeded, Unsupported
from tract_nnef.syntax.ast import (
    MAX_DEPTH,
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
from tract_nnef.syntax.names import BUILT_IN, is_plain, is_version

# How strongly the parts of expressions hold together, as grammar.lark has it.
_SELECT, _IN, _LOGICAL, _COMPARISON, _SUM, _PRODUCT, _SIGNED, _POWER, _INDEXED, _PRIMARY = range(10)
_LEVELS: Final = (
    {"in": _IN}
    | dict.fromkeys(("&&", "||"), _LOGICAL)
    | dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARISON)
    | {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "^": _POWER}
)

Said = tuple[str, int]
"""The text of an expression, and how strongly it holds together."""


def print_document(document: Document, *, extended: bool = False) -> str:
    """The text of graph.nnef. The fragments are sorted by name."""
    parts = [f"version {_version(document.version)};"]
    if document.extensions:
        parts.append("\n".join(f"extension {_extension(text)};" for text in document.extensions))
    fragments = sorted(document.fragments, key=lambda fragment: fragment.name)
    parts += [print_fragment(one, extended=extended) for one in fragments]
    parts.append(_graph(document.graph, _Printer(extended)))
    return "\n\n".join(parts) + "\n"


def print_fragment(fragment: Fragment, *, extended: bool = False) -> str:
    """The text of a fragment, without an end of line behind it. Each parameter has a line of its own."""
    printer = _Printer(extended)
    item = f" = {_primitive(fragment.item)}" if fragment.item else ""
    generic = f"<?{item}>" if fragment.generic else ""
    parameters = ",\n".join(f"  {printer.declared(one)}" for one in fragment.parameters)
    lines = f"{parameters}\n" if parameters else ""
    results = ", ".join(printer.declared(one) for one in fragment.results)
    head = f"fragment {printer.name(fragment.name)}{generic}(\n{lines}) -> ({results})"
    return f"{head};" if fragment.body is None else f"{head}\n{_body(fragment.body, printer)}"


def print_statements(statements: Iterable[Assignment], *, extended: bool = False) -> str:
    """The text of assignments, each in a line."""
    printer = _Printer(extended)
    return "".join(f"{printer.statement(one)}\n" for one in statements)


def print_expression(expression: Expression, *, extended: bool = False) -> str:
    """The text of an expression."""
    return _Printer(extended).at(expression, _SELECT)


def print_quantization(lines: Iterable[Quantization], *, extended: bool = False) -> str:
    """The text of graph.quant, a tensor in each line. Their names are in quotes, so they may be any."""
    printer = _Printer(extended)
    return "".join(f"{_quoted(one.tensor)}: {printer.at(one.invocation, _SELECT)};\n" for one in lines)


def print_type(kind: Type) -> str:
    """The text of a type."""
    return _type(kind, 1)


def shortest(value: float) -> float:
    """The number of fewest digits that is ``value`` when it is rounded to 32 bits: 0.1 for 0.10000000149011612."""
    import numpy as np

    return float(str(np.float32(value)))


def _version(version: str) -> str:
    if not is_version(version):
        raise Unsupported(f"the version is {version}, and 1.0 is what can be written")
    return version


def _extension(text: str) -> str:
    if ";" in text or text != text.strip() or not re.match("[A-Za-z_]", text):
        raise Unsupported(
            f"the extension {text!r} does not begin with a name, or has a semicolon or blanks at its ends"
        )
    return text


def _graph(graph: Graph, printer: _Printer) -> str:
    inputs, outputs = (", ".join(map(printer.name, names)) for names in (graph.inputs, graph.outputs))
    return f"graph {printer.name(graph.name)}({inputs}) -> ({outputs}) {_body(graph.body, printer)}"


def _body(statements: Iterable[Assignment], printer: _Printer) -> str:
    return "{\n" + "".join(f"  {printer.statement(one)}\n" for one in statements) + "}"


def _type(kind: Type, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(kind, TensorOf):
        return f"tensor<{_primitive(kind.item) if kind.item else ''}>"
    if isinstance(kind, ArrayOf):
        return f"{_type(kind.item, depth + 1)}[]"
    if isinstance(kind, TupleOf):
        return f"({', '.join(_type(item, depth + 1) for item in kind.items)})"
    return _primitive(kind)


def _primitive(kind: Primitive) -> str:
    return kind.name


def _quoted(text: str) -> str:
    """Both kinds of quotes are escaped: there are readers that take neither in the other."""
    return '"' + re.sub(r"[\\\"']", r"\\\g<0>", text) + '"'


def _number(value: float) -> str:
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise Unsupported(
                f"{value} takes more than 64 bits", hint="write it as a scalar, or as a tensor of its own"
            )
        return str(value)
    if isnan(value):
        raise Unsupported("NNEF has no text for NaN", hint="write it as a tensor of its own")
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    digits, _, exponent = repr(value).partition("e")
    return f"{digits}e{int(exponent)}" if exponent else digits  # there are readers that take no plus, and no 05


def _too_deep() -> LimitExceeded:
    return LimitExceeded(
        f"more than {MAX_DEPTH} expressions are inside one another",
        hint="give the inner ones names, in statements of their own",
    )


class _Printer:
    """What prints expressions, with names ``i"any text"`` or without them."""

    def __init__(self, extended: bool) -> None:
        self._extended = extended
        self._depth = 0

    def name(self, name: str) -> str:
        if is_plain(name):
            return name
        if not self._extended:
            raise Unsupported(
                f"NNEF cannot write the name {name!r}",
                hint='it can with names of the form i"any text", which not every reader takes',
            )
        return f"i{_quoted(name)}"

    def declared(self, one: Parameter | Result) -> str:
        default = one.default if isinstance(one, Parameter) else None
        said = f" = {self.at(default, _SELECT)}" if default is not None else ""
        return f"{self.name(one.name)}: {_type(one.type, 1)}{said}"

    def statement(self, one: Assignment) -> str:
        return f"{self.at(one.targets, _SELECT)} = {self.at(one.value, _SELECT)};"

    def at(self, expression: Expression, level: int) -> str:
        """The text of an expression, in parentheses where its place wants one that holds together better."""
        self._deeper(1)
        text, own = _SAID[type(expression)](self, expression)
        self._depth -= 1
        return f"({text})" if own < level else text

    def _deeper(self, by: int) -> None:
        self._depth += by
        if self._depth > MAX_DEPTH:
            raise _too_deep()

    def items(self, items: Iterable[Expression]) -> str:
        return ", ".join([self.at(item, _SELECT) for item in items])

    def literal(self, one: Literal) -> Said:
        value = one.value
        if isinstance(value, str):
            return _quoted(value), _PRIMARY
        if isinstance(value, bool):
            return str(value).lower(), _PRIMARY
        text = _number(value)
        if text[0] != "-":
            return text, _PRIMARY
        self._deeper(1)  # a sign and a number are two, until they are put together
        self._depth -= 1
        return text, _SIGNED

    def identifier(self, one: Identifier) -> Said:
        return self.name(one.name), _PRIMARY

    def array(self, one: Array) -> Said:
        return f"[{self.items(one.items)}]", _PRIMARY

    def tuple(self, one: Tuple) -> Said:
        return f"({self.items(one.items)}{',' * (len(one.items) == 1)})", _PRIMARY

    def subscript(self, one: Subscript) -> Said:
        return f"{self.at(one.of, _INDEXED)}[{self.at(one.index, _SELECT)}]", _INDEXED

    def range(self, one: Range) -> Said:
        begin, end = ("" if part is None else self.at(part, _SELECT) for part in (one.begin, one.end))
        return f"{self.at(one.of, _INDEXED)}[{begin}:{end}]", _INDEXED

    def unary(self, one: Unary) -> Said:
        return f"{one.op}{self.at(one.of, _SIGNED)}", _SIGNED

    def binary(self, one: Binary) -> Said:
        level = _LEVELS[one.op]
        left = self.at(one.left, level)
        right = self.at(one.right, level + 1)
        return f"{left} {one.op} {right}", level

    def select(self, one: Select) -> Said:
        parts = self.at(one.then, _IN), self.at(one.condition, _IN), self.at(one.otherwise, _SELECT)
        return "{} if {} else {}".format(*parts), _SELECT

    def comprehension(self, one: Comprehension) -> Said:
        loops = ", ".join([f"{self.name(name)} in {self.at(values, _IN)}" for name, values in one.loops])
        condition = "" if one.condition is None else f" if {self.at(one.condition, _SELECT)}"
        return f"[for {loops}{condition} yield {self.at(one.value, _SELECT)}]", _PRIMARY

    def called(self, name: str) -> str:
        """The name of a function or of an argument, which may be that of a type: ``complex = true``."""
        return name if name in BUILT_IN else self.name(name)

    def argument(self, one: Argument) -> str:
        value = self.at(one.value, _SELECT)
        return value if one.name is None else f"{self.called(one.name)} = {value}"

    def invocation(self, one: Invocation) -> Said:
        name = self.called(one.name)
        item = f"<{_primitive(one.item)}>" if one.item else ""
        return f"{name}{item}({', '.join([self.argument(each) for each in one.arguments])})", _PRIMARY


_SAID: Final[dict[type, Callable[[_Printer, Any], Said]]] = {
    Literal: _Printer.literal,
    Identifier: _Printer.identifier,
    Array: _Printer.array,
    Tuple: _Printer.tuple,
    Subscript: _Printer.subscript,
    Range: _Printer.range,
    Unary: _Printer.unary,
    Binary: _Printer.binary,
    Select: _Printer.select,
    Comprehension: _Printer.comprehension,
    Invocation: _Printer.invocation,
}
