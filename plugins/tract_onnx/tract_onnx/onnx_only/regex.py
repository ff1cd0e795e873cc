"""What regular expressions find in texts, by RE2, whose time is proportional to the text's length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import re2 as _re2  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]: the package carries no types

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel, FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.ops.lookup import text_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.strings import as_objects, texts

ROWS = Rows()

_RE2: Any = _re2

MAX_BYTES: Final = 8 << 20
"""Memory that a compiled expression may take."""


@frozen
class RegexFullMatch(TypedOp):
    """Whether the regular expression ``pattern``, in the syntax of RE2, matches the whole of each text."""

    pattern: str

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Booleans in the input's shape. Raises FactError for anything but texts, CorruptModel for the pattern."""
        (x,) = arity(self, inputs, 1)
        texts(self, x)
        compiled(self.pattern)
        return (x.with_type(DatumType.BOOL),)


@frozen
class Tokenizer(TypedOp):
    """Each text cut into tokens, on a new last axis.

    ``expression``: what a token is; empty where ``separators`` say what stands between tokens. An empty separator cuts
    between any two characters. Tokens with fewer than ``shortest`` characters are left out. ``mark``: whether the
    tokens of a text stand between U+0002 and U+0003. ``width``: the most tokens that any text has, marks included, a
    fresh symbol as a rule; the others are filled up with ``pad``. All follow ONNX Runtime's operator of that name.
    """

    expression: str
    separators: tuple[str, ...]
    shortest: int
    mark: bool
    pad: str
    width: Dim
    announces: ClassVar[tuple[str, ...]] = ("width",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The tokens. Raises FactError for anything but texts on one axis or two, CorruptModel for the expressions."""
        (x,) = arity(self, inputs, 1)
        texts(self, x)
        if x.rank not in (1, 2):
            raise FactError(f"Tokenizer wants texts on one axis or two, found {x}")
        for pattern in (self.expression, *self.separators):
            compiled(pattern, longest=True)
        return (x.with_shape((*x.shape, self.width)),)


@lru_cache(maxsize=64)
def compiled(pattern: str, *, longest: bool = False) -> Any:
    """A regular expression, ready to match. Raises CorruptModel when it is none, or one that needs too much memory.

    ``longest``: whether the longest match at a place counts, rather than that of the alternative named first.
    """
    options = _RE2.Options()
    options.log_errors = False
    options.longest_match = longest
    options.max_mem = MAX_BYTES
    try:
        return _RE2.compile(pattern, options)
    except _RE2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise CorruptModel(
            f"{pattern[:200]!r} is not a regular expression: {reason[:200]}",
            hint="the syntax is that of RE2: no look-around, no back-references, at most 1000 repetitions",
        ) from None


@ROWS.row(REFERENCE, RegexFullMatch)
def reference(op: RegexFullMatch, x: Array) -> Array:
    """re2.fullmatch"""
    match = compiled(op.pattern).fullmatch
    return np.array([match(text_of(text)) is not None for text in x.reshape(-1).tolist()], np.bool_).reshape(x.shape)


@ROWS.row(REFERENCE, Tokenizer)
def tokenize(op: Tokenizer, x: Array) -> Array:
    """re2.finditer"""
    found = [_tokens(op, text_of(text)) for text in x.reshape(-1).tolist()]
    if op.mark and any(found):
        found = [["\x02", *tokens, "\x03"] for tokens in found]
    width = max(map(len, found), default=0)
    result = as_objects([token for tokens in found for token in [*tokens, *[op.pad] * (width - len(tokens))]])
    return result.reshape((*x.shape, width))


def _tokens(op: Tokenizer, text: str) -> list[str]:
    tokens = [text]
    if op.expression:
        tokens = [match.group() for match in compiled(op.expression, longest=True).finditer(text)]
    elif op.separators == ("",):
        tokens = list(text)
    else:
        for separator in op.separators:
            tokens = [piece for token in tokens for piece in _between(compiled(separator, longest=True), token)]
    return [token for token in tokens if len(token) >= op.shortest]


def _between(separator: Any, text: str) -> Iterator[str]:
    start = 0
    for match in separator.finditer(text):
        if match.end() > match.start():
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


@ROWS.row(COST, RegexFullMatch, Tokenizer)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """No arithmetic."""
    return {}


@ROWS.row(AXES, RegexFullMatch)
def axes(op: RegexFullMatch, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])


@ROWS.row(AXES, Tokenizer)
def tokenizer_axes(op: Tokenizer, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Disconnected: how many tokens any text has depends on every one of them."""
    return AxesMapping.disconnected([inputs[0].rank], [outputs[0].rank])
