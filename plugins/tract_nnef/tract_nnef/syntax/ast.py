"""What an NNEF document says, as data.

The grammar is that of NNEF 1.0.5, chapters 3 and 4, in its flat and in its compositional form, with what the tract
engines add: identifiers ``i"any text"``, and extension lines of any text.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final, TypeAlias

from tract_core.frozen import frozen

MAX_DEPTH: Final = 128
"""Expressions, or types, inside one another: texts that go deeper are refused, so whoever walks over what a text says
may do so by recursion."""

# --- types ------------------------------------------------------------------------------------------------------------


@frozen
class Primitive:
    """``integer``, ``scalar``, ``logical``, ``string``, ``complex``, or ``?``, which a generic fragment takes.

    ``name``: which of these.
    """

    name: str


@frozen
class TensorOf:
    """``tensor<scalar>``; ``tensor<>``, of any element type, is that of ``None``. ``item``: that type."""

    item: Primitive | None


@frozen
class ArrayOf:
    """``integer[]``. ``item``: the type of its elements."""

    item: Type


@frozen
class TupleOf:
    """``(integer, scalar)``. ``items``: the types of its parts."""

    items: tuple[Type, ...]


Type: TypeAlias = Primitive | TensorOf | ArrayOf | TupleOf

# --- expressions ------------------------------------------------------------------------------------------------------


@frozen
class Literal:
    """A number, a text, or a truth value. What is written with a point, an exponent, or as ``inf`` is a float."""

    value: bool | int | float | str


@frozen
class Identifier:
    """The name of a tensor, of a parameter, of a loop's variable, or of a symbol."""

    name: str


@frozen
class Array:
    """``[a, b]``. ``items``: its elements."""

    items: tuple[Expression, ...]


@frozen
class Tuple:
    """``(a, b)``. ``items``: its parts."""

    items: tuple[Expression, ...]


@frozen
class Subscript:
    """``x[i]``. ``of``: what an element is taken of; ``index``: which one."""

    of: Expression
    index: Expression


@frozen
class Range:
    """``x[begin:end]``, each of which may be left out."""

    of: Expression
    begin: Expression | None
    end: Expression | None


@frozen
class Unary:
    """``op``: ``+``, ``-`` or ``!``. ``of``: what stands behind it."""

    op: str
    of: Expression


@frozen
class Binary:
    """``op``: one of ``+ - * / ^ < <= > >= == != && || in``. ``left``, ``right``: what stands around it."""

    op: str
    left: Expression
    right: Expression


@frozen
class Select:
    """``then if condition else otherwise``."""

    then: Expression
    condition: Expression
    otherwise: Expression


@frozen
class Comprehension:
    """``[for a in x, b in y if condition yield value]``. ``loops``: each name, and what it goes through."""

    loops: tuple[tuple[str, Expression], ...]
    condition: Expression | None
    value: Expression


@frozen
class Argument:
    """Of an invocation; ``name`` is ``None`` for one that is given by its place. ``value``: what is given."""

    name: str | None
    value: Expression


@frozen
class Invocation:
    """``conv<scalar>(x, w, stride = [2, 2])``.

    The built-in functions of the text (``shape_of``, ``length_of``, ``range_of``, ``integer``, ``scalar``, ``logical``,
    ``string``) are invocations too. ``item``: the type in angle brackets.

    ``name``: of the operator.
    """

    name: str
    arguments: tuple[Argument, ...]
    item: Primitive | None = None


Expression: TypeAlias = (
    Literal | Identifier | Array | Tuple | Subscript | Range | Unary | Binary | Select | Comprehension | Invocation
)

# --- documents --------------------------------------------------------------------------------------------------------


@frozen
class Assignment:
    """``targets = value;``: the targets are names, in arrays and tuples. ``line``: where it begins, counted from 1."""

    targets: Expression
    value: Expression
    line: int = field(default=0, compare=False)


@frozen
class Parameter:
    """``name: type = default``."""

    name: str
    type: Type
    default: Expression | None = None


@frozen
class Result:
    """``name: type``."""

    name: str
    type: Type


@frozen
class Fragment:
    """An operator: one that is given by its body, or one that is only declared, with ``body=None``.

    ``generic``: whether it takes a type, as ``fragment f<?>``; ``item``: the type that it takes where none is
    given. ``name``: of the operator. ``line``: where it is in the text.
    """

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    body: tuple[Assignment, ...] | None = None
    generic: bool = False
    item: Primitive | None = None
    line: int = field(default=0, compare=False)


@frozen
class Graph:
    """``graph name(inputs) -> (outputs) { body }``."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    body: tuple[Assignment, ...]


@frozen
class Document:
    """``extensions``: the text of each such line, without the word ``extension`` and the semicolon, blanks trimmed.

    ``version``: of the format, as the first line has it.
    """

    version: str
    extensions: tuple[str, ...]
    fragments: tuple[Fragment, ...]
    graph: Graph


@frozen
class Quantization:
    """A line of ``graph.quant``: how a tensor is quantised, by an operator whose arguments are literals."""

    tensor: str
    invocation: Invocation
    line: int = field(default=0, compare=False)
