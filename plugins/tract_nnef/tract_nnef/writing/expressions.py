"""Values as expressions of the format."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from math import isnan
from typing import Any, Final, cast

import numpy as np

from tract_core.data import DatumType, DType, SymbolicArray, Value
from tract_core.dims import Dim, TDim
from tract_core.dims.atoms import Atom, Kind
from tract_core.errors import Unsupported
from tract_core.plugins.keys import Array
from tract_nnef.syntax import ast
from tract_nnef.syntax.names import is_plain
from tract_nnef.syntax.parser import parse_statements

MOST_INLINE: Final = 8
"""Elements of a constant that is written where it is read."""

_MOST_I64: Final = 2**63 - 1

SIZE: Final = "tract_py_size"
"""The operator whose argument is the text of a size."""

EXTERNAL: Final = "tract_py_external"
"""The operator that is an input of any type."""


def express(value: Any) -> ast.Expression:
    """Numbers, sizes, texts, truth values, names of types, and tuples and lists of these; expressions as they are.

    Lists become arrays, tuples of sizes too, as the format has no tuples of any length. Raises Unsupported.
    """
    match value:
        case bool() | int() | str():
            return ast.Literal(value if not isinstance(value, Enum) else value.value)
        case float() if not isnan(value):
            return ast.Literal(value)
        case TDim():
            return dim_expression(value)
        case list():
            return ast.Array(tuple(map(express, cast("list[Any]", value))))
        case tuple():
            return ast.Tuple(tuple(map(express, cast("tuple[Any, ...]", value))))
        case _ if isinstance(value, ast.Expression):
            return value
        case _:
            raise Unsupported(f"{value!r} cannot be written in an NNEF document")


def constant_expression(value: Value, *, alike: bool = False) -> ast.Expression | None:
    """A constant as it is written where it is read; ``None`` for one that cannot be.

    Floats of 32 bits and texts are nested arrays; integers and halves are cast, with an operator of ``tract_core``.
    ``alike``: whether sizes are written for the established engine, see `_all_sizes`.
    """
    if isinstance(value, SymbolicArray):
        sizes = _all_sizes(value) if alike else value.array.tolist()
        return nested(sizes, pairs=not value.array.ndim)
    array, kind = value.array, value.datum_type
    if array.size == 0 or not (kind.is_integer() or kind in (DatumType.F32, DatumType.F16, DatumType.STRING)):
        return None
    if kind.is_float() and np.isnan(array).any():
        return None
    if kind is DatumType.U64 and array.max() > _MOST_I64:
        return None  # other readers take what is written for i64 first
    written = nested(_shortest(array).tolist() if kind is DatumType.F32 else array.tolist())
    if kind in (DatumType.F32, DatumType.STRING):
        return written
    return cast_expression(written, kind)


def _all_sizes(value: SymbolicArray) -> Any:
    """The elements in nested lists as the established engine understands them.

    It joins no numbers with sizes, so these look as sizes, ``0 * B + 3``; and it takes ``B - B / 2`` for ``B / 2``.
    """
    name = min((name for name in value.symbols() if is_plain(name)), default=None)
    sizes = value.array.copy()
    for place, one in np.ndenumerate(sizes):
        if isinstance(one, TDim):
            sizes[place] = _without_less(one)
        elif name is not None:
            sizes[place] = _parsed(f"0 * {name} + {one}")
    return sizes.tolist()


def _without_less(size: TDim) -> Dim:
    """The same without the one quotient that is taken away: ``t - a / k`` is ``(k*t - a + k-1) / k``, rounded down."""
    calls = [(factors[0], times) for factors, times in size.terms.items() if not isinstance(factors[0], str)]
    if len(calls) != 1 or calls[0][1] != -1 or calls[0][0].kind is not Kind.DIV:
        return size
    above, below = calls[0][0].args
    if not isinstance(below, int):
        return size
    return ((size + above // below) * below - above + below - 1) // below


def _parsed(text: str) -> ast.Expression:
    (assignment,) = parse_statements(f"size = {text};")
    return assignment.value


def cast_expression(written: ast.Expression, kind: DType) -> ast.Invocation:
    """An expression in an element type, with an operator of ``tract_core``."""
    to = ast.Argument("to", ast.Literal(type_name(kind)))
    return ast.Invocation("tract_core_cast", (ast.Argument(None, written), to))


def _shortest(array: Array) -> Array:
    """Floats of 64 bits, with as few decimals as it takes to be read as the same floats of 32 bits again."""
    return np.array([float(str(one)) for one in array.reshape(-1)], np.float64).reshape(array.shape)


def nested(value: Any, *, pairs: bool = True) -> ast.Expression:
    """Arrays in arrays. ``pairs``: whether the larger of two sizes may be an operator, which gives a tensor."""
    if isinstance(value, list):
        return ast.Array(tuple(nested(one, pairs=pairs) for one in cast("list[Any]", value)))
    words = isinstance(value, TDim) and not pairs and not is_plain_size(value, pairs=False)
    return _in_words(value) if words else express(value)


def variable(label: str, shape: Sequence[int]) -> ast.Invocation:
    """A tensor that lies beside the text."""
    arguments = ast.Argument("label", ast.Literal(label)), ast.Argument("shape", express(list(shape)))
    return ast.Invocation("variable", arguments, ast.Primitive("scalar"))


def type_name(kind: DType) -> str:
    """The name of an element type in archives, as ``f32``."""
    return kind.storage.short


def external_type(kind: DType) -> str:
    """The name of an element type in a ``tract_core_external``, as ``F32``."""
    names = {DatumType.BOOL: "Bool", DatumType.STRING: "String", DatumType.TDIM: "TDim"}
    return names.get(kind.storage, kind.storage.name)


@cache
def dim_expression(dim: TDim) -> ast.Expression:
    """A size as an expression: its text form, which has the same precedences.

    Where that has operations or names that the format does not know, it is the text in an operator of ``tract_py``.
    """
    if is_plain_size(dim):
        return _parsed(str(dim))
    return _in_words(dim)


def _in_words(dim: TDim) -> ast.Expression:
    return ast.Invocation(SIZE, (ast.Argument("text", ast.Literal(str(dim))),))


def is_plain_size(dim: Dim, *, pairs: bool = True) -> bool:
    """Whether a size is made of plain names, sums, products, divisions by numbers, and the larger or smaller of two.

    ``pairs``: whether the last is allowed.
    """
    if not isinstance(dim, TDim):
        return True
    factors = [factor for product in dim.terms for factor in product]
    return all(is_plain(one) if isinstance(one, str) else _is_plain_call(one, pairs) for one in factors)


def _is_plain_call(call: Atom, pairs: bool) -> bool:
    pair = pairs and call.kind in (Kind.MIN, Kind.MAX) and len(call.args) == 2
    return (pair or call.kind is Kind.DIV) and all(is_plain_size(one, pairs=pairs) for one in call.args)


def sizes_in_words(expression: ast.Expression) -> str | None:
    """The text of a size in an expression that only ``tract_py`` can say, if there is one."""
    match expression:
        case ast.Invocation(name, arguments):
            if name == SIZE and isinstance(arguments[0].value, ast.Literal):
                return str(arguments[0].value.value)
            parts = [one.value for one in arguments]
        case ast.Array(items) | ast.Tuple(items):
            parts = items
        case ast.Binary(_, left, right):
            parts = [left, right]
        case ast.Unary(_, of):
            parts = [of]
        case _:
            return None
    return next((found for part in parts if (found := sizes_in_words(part)) is not None), None)
