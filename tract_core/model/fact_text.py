"""Facts from text, as users write them: ``1,3,S,f32``.

A comma-separated list of sizes with the element type last. ``_`` is a size that is not known, an empty text says
nothing at all, and a last entry that is no element type is a size. Sizes are expressions of symbols, as in
`tract_core.dims.parse_dim`. Behind an equals sign stand the elements of a tensor that is known, in row-major order:
``2,i64=3,4``, ``i64=16000``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tract_core.data import Constant, DatumType, DType, parse_dtype
from tract_core.dims import Dim, SymbolScope, is_symbolic, parse_dim, symbols_of
from tract_core.errors import DimError, FactError
from tract_core.model.fact import InferenceFact, TypedFact

_LIKE_A_TYPE: Final = r"(?i)(float|double|half|bfloat|fp|bf|u?int|long|str)\d*|[fiu]\d+"
"""What others call element types: as the last entry it was meant as one, and not as a symbol."""

_WITH_VALUES: Final = r'(?s)((?:i"(?:\\.|[^"\\])*"|[^"=])*)=(.*)'
_BOOLEANS: Final = {"1": True, "0": False, "true": True, "false": False}

_UNKNOWN: Final = ("_", "?")
_ANY_RANK: Final = ".."
_WITH_CROSSES: Final = r"(?a)\w+(x\w+)+"
"""Sizes as they are spoken, as in 1x3x32x32."""
_PIECE: Final = r'(?s)i"(?:\\.|[^"\\])*"|[(),]|[^(),i]+|i'
"""A name in quotes, a sign that matters to where entries end, or what stands between these."""


def parse_inference_fact(text: str, scope: SymbolScope | None = None) -> InferenceFact:
    """A partial fact from its text form. The symbols that occur in it are added to ``scope``.

    Raises FactError or DimError when an entry is neither a size nor an element type, when the last one is the name
    that others have for an element type, when a size is negative, and when the values do not fit the fact.
    """
    with_values = re.fullmatch(_WITH_VALUES, text)
    if with_values is not None:
        fact = parse_inference_fact(with_values[1], scope)
        return replace(fact, value=Constant(parse_values(fact.to_typed(), with_values[2])))
    tokens = _split(text)
    if not tokens:
        return InferenceFact()
    kind = _as_type(tokens[-1])
    if kind is None and re.fullmatch(_LIKE_A_TYPE, tokens[-1]):
        raise FactError(f"{tokens[-1]!r} in {text!r} is no element type", hint="they are written f32, i64, bool, ...")
    if kind is not None or tokens[-1] == "?":
        tokens = tokens[:-1]
    if tokens == [_ANY_RANK]:
        return InferenceFact(kind, None)
    return InferenceFact(kind, tuple(_as_dim(token, text, scope) for token in tokens))


def parse_typed_fact(text: str, scope: SymbolScope | None = None) -> TypedFact:
    """A complete fact from its text form. Raises FactError when a type or a size is missing."""
    return parse_inference_fact(text, scope).to_typed()


def parse_values(fact: TypedFact, text: str) -> np.ndarray[Any, Any]:
    """The array of ``1,2,3`` in the type and shape of ``fact``. Raises FactError when number or form do not fit."""
    kind = fact.datum_type.storage
    try:
        elements = [_read(kind, token.strip()) for token in text.split(",")] if text.strip() else []
        return np.array(elements, dtype=kind.numpy).reshape(fact.shape.concrete)
    except (ValueError, OverflowError, KeyError):
        raise FactError(f"{text!r} is not {fact.shape.volume} values for {fact}") from None


def _read(kind: DatumType, token: str) -> Any:
    if kind is DatumType.STRING:
        return token
    return _BOOLEANS[token.lower()] if kind.is_bool() else int(token) if kind.is_integer() else float(token)


def _split(text: str) -> list[str]:
    """The entries between commas that are not inside parentheses or quotes."""
    if not text.strip():
        return []
    entries, depth = [""], 0
    for piece in re.findall(_PIECE, text):
        depth = max(0, depth + (piece == "(") - (piece == ")"))
        if piece == "," and depth == 0:
            entries.append("")
        else:
            entries[-1] += piece
    entries = [entry.strip() for entry in entries]
    if "" in entries:
        raise FactError(f"{text!r} has an empty entry", hint="write _ for a size that is not known")
    return entries


def _as_type(token: str) -> DType | None:
    try:
        return parse_dtype(token)
    except FactError:
        return None


def _as_dim(token: str, text: str, scope: SymbolScope | None) -> Dim | None:
    if token in _UNKNOWN:
        return None
    try:
        dim = parse_dim(token)
    except DimError:
        if not re.fullmatch(_WITH_CROSSES, token):
            raise
        hint = f"write {text.replace(token, token.replace('x', ','))!r}"
        raise FactError(f"sizes have commas between them, as {text!r} has not", hint=hint) from None
    if not is_symbolic(dim) and int(dim) < 0:
        raise FactError(f"size {dim} in {text!r} is negative", hint="write _ for a size that is not known")
    if scope is not None:
        for symbol in symbols_of(dim):
            scope.add(symbol)
    return dim
