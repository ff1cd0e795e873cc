"""Runs of items counted: the n-grams of a text, each weighted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.ops.lookup import text_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class Weighting(Enum):
    """What stands for an n-gram: how often it is there, its weight where it is there, or the product of both."""

    TF = "TF"
    IDF = "IDF"
    TFIDF = "TFIDF"


@frozen
class TfIdfVectorizer(TypedOp):
    """For each row, one number (f32) per known n-gram.

    ``pool``: the items of all known n-grams, one after another. ``lengths``: how many items each n-gram has;
    ``places``: where in the output it is counted, and ``weights``: what it weighs. The items of an n-gram that is
    looked for follow one another, or have up to ``max_skip`` others between any two of them, always as many.
    Only n-grams of ``min_length`` to ``max_length`` items are counted.
    """

    pool: Constant
    lengths: tuple[int, ...]
    places: tuple[int, ...]
    weights: tuple[float, ...]
    weighting: Weighting
    min_length: int
    max_length: int
    max_skip: int

    @property
    def width(self) -> int:
        """How many numbers there are for a row."""
        return max(self.places, default=-1) + 1

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One row per row of the input. Raises FactError for a type unlike that of the pool, or more than two axes."""
        (x,) = arity(self, inputs, 1)
        kind = self.pool.datum_type
        fits = x.datum_type.is_integer() if kind.is_integer() else x.datum_type == kind
        if not fits or x.rank not in (1, 2):
            raise FactError(f"TfIdfVectorizer wants a list or a matrix of {kind.short}, found {x}")
        return (TypedFact.of(DatumType.F32, (*x.shape[:-1], self.width)),)


@ROWS.row(REFERENCE, TfIdfVectorizer)
def reference(op: TfIdfVectorizer, x: Array) -> Array:
    """Every run of items is looked up in a dictionary of the known ones"""
    index = {ngram: i for i, ngram in enumerate(_split(_items(op.pool.array), op.lengths))}
    rows = x.reshape(prod(x.shape[:-1]), x.shape[-1])
    counts = np.zeros((len(rows), len(op.lengths)), np.float64)
    for row, items in enumerate(rows):
        check_run_time()
        for ngram in _runs(_items(items), op):
            if (found := index.get(ngram)) is not None:
                counts[row, found] += 1
    weighted = _weighted(op, counts)
    result = np.zeros((len(rows), op.width), np.float64)
    for ngram, place in enumerate(op.places):  # several may have one place
        result[:, place] += weighted[:, ngram]
    return result.reshape((*x.shape[:-1], op.width)).astype(np.float32)


def _weighted(op: TfIdfVectorizer, counts: Array) -> Array:
    if op.weighting is Weighting.TF:
        return counts
    return (np.minimum(counts, 1) if op.weighting is Weighting.IDF else counts) * np.array(op.weights)


def _items(x: Array) -> list[Any]:
    return [text_of(item) for item in x.tolist()] if x.dtype.kind == "O" else x.tolist()


def _split(items: list[Any], lengths: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    start = 0
    for length in lengths:
        yield tuple(items[start : start + length])
        start += length


def _runs(items: list[Any], op: TfIdfVectorizer) -> Iterator[tuple[Any, ...]]:
    """The n-grams of a row: of each length and, but for single items, with each number of others skipped."""
    for length in range(op.min_length, min(op.max_length, len(items)) + 1):
        for step in range(1, op.max_skip + 2 if length > 1 else 2):
            reach = (length - 1) * step + 1
            if reach > len(items):
                break
            for start in range(len(items) - reach + 1):
                yield tuple(items[start : start + reach : step])


@ROWS.row(COST, TfIdfVectorizer)
def cost(op: TfIdfVectorizer, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A product per number of the output."""
    return {"FMA(F32)": outputs[0].shape.volume}


@ROWS.row(AXES, TfIdfVectorizer)
def axes(op: TfIdfVectorizer, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Rows stay in place."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [inputs[0].rank - 1])
