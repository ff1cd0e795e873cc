"""Texts that a regular expression matches, found by RE2, whose time is proportional to the text's length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import re2 as _re2  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]: the package carries no types

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows
from tract_onnx.operators.strings import text_of, texts

ROWS = Rows()

_RE2: Any = _re2

MAX_BYTES: Final = 8 << 20
"""Memory that a compiled expression may take."""


@dataclass(frozen=True, slots=True)
class RegexFullMatch(TypedOp):
    """Whether the regular expression ``pattern``, in the syntax of RE2, matches the whole of each text."""

    pattern: str

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Booleans in the input's shape. Raises FactError for anything but texts, CorruptModel for the pattern."""
        (x,) = arity(self, inputs, 1)
        texts(self, x)
        compiled(self.pattern)
        return (x.with_type(DatumType.BOOL),)


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Any:
    """A regular expression, ready to match. Raises CorruptModel when it is none, or one that needs too much memory."""
    options = _RE2.Options()
    options.log_errors = False
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


@ROWS.row(COST, RegexFullMatch)
def cost(op: RegexFullMatch, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """No arithmetic."""
    return {}


@ROWS.row(AXES, RegexFullMatch)
def axes(op: RegexFullMatch, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
