"""Facts from text, as users write them: ``1,3,S,f32``.

A comma-separated list of sizes with the element type last. ``_`` is a size that is not known, an empty text says
nothing at all, and a last entry that is no element type is a size. Sizes are expressions of symbols, as in
`tract_core.dims.parse_dim`.
"""

from __future__ import annotations

import re
from typing import Final

from tract_core.data import DType, parse_dtype
from tract_core.dims import Dim, SymbolScope, is_symbolic, parse_dim, symbols_of
from tract_core.errors import FactError
from tract_core.model.fact import InferenceFact, TypedFact

_LIKE_A_TYPE: Final = re.compile(r"(float|double|half|bfloat|fp|bf|u?int|long|str)\d*|[fiu]\d+", re.IGNORECASE)
"""What others call element types: as the last entry it was meant as one, and not as a symbol."""

_UNKNOWN: Final = ("_", "?")
_ANY_RANK: Final = ".."
_ENTRY: Final = re.compile(r'(?:i"(?:\\.|[^"\\])*"|\((?:[^()]|\([^()]*\))*\)|[^,])+')


def parse_inference_fact(text: str, scope: SymbolScope | None = None) -> InferenceFact:
    """A partial fact from its text form. The symbols that occur in it are added to ``scope``.

    Raises FactError or DimError when an entry is neither a size nor an element type, when the last one is the name
    that others have for an element type, and when a size is negative.
    """
    tokens = _split(text)
    if not tokens:
        return InferenceFact()
    kind = _as_type(tokens[-1])
    if kind is None and _LIKE_A_TYPE.fullmatch(tokens[-1]):
        raise FactError(f"{tokens[-1]!r} in {text!r} is no element type", hint="they are written f32, i64, bool, ...")
    if kind is not None or tokens[-1] == "?":
        tokens = tokens[:-1]
    if tokens == [_ANY_RANK]:
        return InferenceFact(kind, None)
    return InferenceFact(kind, tuple(_as_dim(token, text, scope) for token in tokens))


def parse_typed_fact(text: str, scope: SymbolScope | None = None) -> TypedFact:
    """A complete fact from its text form. Raises FactError when a type or a size is missing."""
    return parse_inference_fact(text, scope).to_typed()


def _split(text: str) -> list[str]:
    """The entries between commas that are not inside parentheses or quotes."""
    if not text.strip():
        return []
    entries = [entry.strip() for entry in _ENTRY.findall(text)]
    if "" in entries or _ENTRY.sub("", text).count(",") >= len(entries):
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
    dim = parse_dim(token)
    if not is_symbolic(dim) and int(dim) < 0:
        raise FactError(f"size {dim} in {text!r} is negative", hint="write _ for a size that is not known")
    if scope is not None:
        for symbol in symbols_of(dim):
            scope.add(symbol)
    return dim
