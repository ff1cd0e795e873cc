"""Operators on texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.text_bytes import POINTER, text_bytes
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_texts
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.binary import axes as stretching
from tract_core.ops.expect import arity, broadcast_shapes, same_rank
from tract_core.ops.lookup import text_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

CASES: Final = ("NONE", "LOWER", "UPPER")
"""What `StringNormalizer` can do to letters."""

_TURKIC: Final = frozenset({"tr", "az"})
"""The languages in which i with a dot and i without one are different letters."""

_LOCALE: Final = re.compile(r"(C|POSIX|[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*)(\.[A-Za-z0-9-]+)?(@[A-Za-z0-9]+)?")


@frozen
class StringConcat(TypedOp):
    """The text of the first input followed by that of the second; an axis of size 1 stretches to meet the other."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Texts in the common shape. Raises FactError for other types, and for ranks or sizes that do not fit."""
        a, b = (texts(self, fact) for fact in arity(self, inputs, 2))
        same_rank(self, inputs)
        return (a.with_shape(broadcast_shapes(self, [a.shape, b.shape])),)


@frozen
class StringSplit(TypedOp):
    """Each text cut into pieces, on a new last axis, and how many pieces there are (i64, without that axis).

    ``delimiter``: what separates pieces; empty for any run of white space, where leading and trailing white space is
    dropped. ``max_split``: how often a text is cut, counted from its start; negative for as often as possible.
    ``width``: the most pieces that any text has, a fresh symbol as a rule; others are filled up with empty texts.
    """

    delimiter: str
    max_split: int
    width: Dim
    announces: ClassVar[tuple[str, ...]] = ("width",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The pieces, and their number for each text. Raises FactError for anything but texts."""
        (x,) = arity(self, inputs, 1)
        texts(self, x)
        return x.with_shape((*x.shape, self.width)), x.with_type(DatumType.I64)


@frozen
class StringNormalizer(TypedOp):
    """A list of texts, or the one row of a matrix, without the ``stop_words``, its letters changed as ``case`` says.

    ``case``: one of `CASES`. ``case_sensitive``: whether upper and lower case differ where stop words are looked for.
    ``locale``: whose letters they are, as ``en_US``; see `is_locale`. ``count``: how many texts are left, a fresh
    symbol as a rule; where none is, one empty text is.
    """

    case: str
    case_sensitive: bool
    stop_words: tuple[str, ...]
    locale: str
    count: Dim
    announces: ClassVar[tuple[str, ...]] = ("count",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's rank, with another size. Raises FactError for anything but texts on one axis."""
        (x,) = arity(self, inputs, 1)
        texts(self, x)
        if x.rank not in (1, 2) or (x.rank == 2 and not is_symbolic(x.shape[0]) and x.shape[0] != 1):
            raise FactError(f"StringNormalizer wants a list of texts, or a matrix of one row, found {x}")
        return (x.with_shape((*x.shape[:-1], self.count)),)


def texts(op: TypedOp, fact: TypedFact) -> TypedFact:
    """``fact`` without its value, when it is of texts. Raises FactError otherwise."""
    if fact.datum_type is not DatumType.STRING:
        raise FactError(f"{op.name} wants texts, found {fact}")
    return fact.without_value()


def is_locale(name: str) -> bool:
    """Whether a text has the form of a locale's name: ``C``, ``POSIX``, or a language and more, as ``sr_RS@latin``."""
    return _LOCALE.fullmatch(name) is not None


def as_objects(values: Sequence[object]) -> Array:
    """A list as an array of Python objects with one axis."""
    result: Array = np.empty(len(values), dtype=object)
    result[:] = values
    return result


@ROWS.row(REFERENCE, StringConcat)
def concat(op: StringConcat, a: Array, b: Array) -> Array:
    """Python's addition of texts"""
    stretched = np.broadcast_arrays(a, b)
    check_texts(sum(map(text_bytes, stretched)) - POINTER * stretched[0].size)
    return np.asarray(np.frompyfunc(lambda x, y: text_of(x) + text_of(y), 2, 1)(a, b), dtype=object)


@ROWS.row(REFERENCE, StringSplit)
def split(op: StringSplit, x: Array) -> tuple[Array, Array]:
    """str.split"""
    pieces = [text_of(text).split(op.delimiter or None, op.max_split) for text in x.reshape(-1).tolist()]
    counts = np.array([len(found) for found in pieces], dtype=np.int64)
    width = int(counts.max(initial=0))
    result = as_objects([piece for found in pieces for piece in [*found, *[""] * (width - len(found))]])
    return result.reshape((*x.shape, width)), counts.reshape(x.shape)


@ROWS.row(REFERENCE, StringNormalizer)
def normalize(op: StringNormalizer, x: Array) -> Array:
    """Stop words are dropped first, then letters are changed"""
    if x.ndim == 2 and x.shape[0] != 1:
        raise RunError(f"StringNormalizer wants a matrix of one row, found {x.shape[0]} rows")
    change, fold = case_changer(op.case, op.locale), case_changer("NONE" if op.case_sensitive else "LOWER", op.locale)
    stop_words = {fold(word) for word in op.stop_words}
    given = map(text_of, x.reshape(-1).tolist())
    kept = [change(word) for word in given if fold(word) not in stop_words]
    return as_objects(kept or [""]).reshape((*x.shape[:-1], -1))


def case_changer(case: str, locale: str) -> Callable[[str], str]:
    """What changes the letters of a text: by Unicode's full mappings, and by those of the Turkic languages."""
    turkic = re.split(r"[_\-.@]", locale, maxsplit=1)[0].lower() in _TURKIC
    changers: dict[tuple[str, bool], Callable[[str], str]] = {
        ("LOWER", False): str.lower,
        ("UPPER", False): str.upper,
        ("LOWER", True): lambda text: text.replace("İ", "i").replace("I", "ı").lower(),
        ("UPPER", True): lambda text: text.replace("i", "İ").replace("ı", "I").upper(),
    }
    return changers.get((case, turkic), lambda text: text)


@ROWS.row(COST, StringConcat, StringSplit, StringNormalizer)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """No arithmetic."""
    return {}


ROWS.add(AXES, StringConcat, stretching)


@ROWS.row(AXES, StringSplit)
def split_axes(op: StringSplit, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Disconnected: how many pieces all texts together need depends on every one of them."""
    return AxesMapping.disconnected([inputs[0].rank], [outputs[0].rank, outputs[1].rank])


@ROWS.row(AXES, StringNormalizer)
def normalize_axes(op: StringNormalizer, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said."""
    return AxesMapping.disconnected([inputs[0].rank], [outputs[0].rank])
