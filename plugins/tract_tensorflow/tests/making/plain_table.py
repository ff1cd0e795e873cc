"""Rows of tables, windows, bytes of elements, and boxes whose scores fall."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from single import Case, numbers, single


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from tables(draw)
    yield from windows(draw)
    yield from casts(draw)
    yield from boxes(draw)


def ints(values: Any, kind: str = "int32") -> Any:
    """Integers."""
    return np.array(values, kind)


def tables(draw: np.random.Generator) -> Iterator[Case]:
    """HASHTABLE_LOOKUP and EMBEDDING_LOOKUP_SPARSE."""
    for shape in ((4,), (4, 3)):
        given = [ints([7, 3, -2, 7, 9]), ints([-2, 0, 7, 8]), numbers(draw, "FLOAT32", shape)]
        label = f"HASHTABLE_LOOKUP {len(shape)}"
        kinds = ["FLOAT32", "UINT8"]
        yield (label, *single("HASHTABLE_LOOKUP", given, kinds, fixed={1, 2}, ranks=[len(shape), 1]))
        yield (f"{label} open", *single("HASHTABLE_LOOKUP", given, kinds, opened={0}, ranks=[len(shape), 1]))
    weights = np.array([1.0, 2.0, 4.0, 0.5], np.float32)
    for combiner in (0, 1, 2):
        options = ("EmbeddingLookupSparseOptions", {"combiner": combiner})
        name = "EMBEDDING_LOOKUP_SPARSE"
        table = numbers(draw, "FLOAT32", (4, 3, 2))
        given = [ints([1, 3, 0, 2]), ints([[0, 0], [2, 0], [2, 1], [2, 3]]), ints([3, 4]), weights, table]
        yield (f"{name} {combiner}", *single(name, given, options=options, fixed={4}, ranks=3))
        given = [
            ints([1, 3, 0, 2]),
            ints([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 0, 3]]),
            ints([2, 2, 4]),
            weights,
            table,
        ]
        yield (f"{name} {combiner} two axes", *single(name, given, options=options, fixed={2, 4}, ranks=4))


def windows(draw: np.random.Generator) -> Iterator[Case]:
    """REDUCE_WINDOW."""
    lists = [[2, 3], [1, 2], [1, 1]], [[1, 2], [2, 1], [1, 3]], [[3, 1], [2, 2], [2, 1]]
    for function, word in ((1, "add"), (2, "mul"), (3, "minimum"), (4, "maximum")):
        for kind in ("FLOAT32", "INT32", "INT8"):
            for index, given in enumerate(lists):
                values = [numbers(draw, kind, (5, 7), 3), numbers(draw, kind, (), 3)]
                values += [ints(one, "int64") for one in given]
                options = ("ReduceWindowOptions", {"reduceFunction": function})
                label = f"REDUCE_WINDOW {word} {kind} {index}"
                yield (label, *single("REDUCE_WINDOW", values, kind, options, fixed={1, 2, 3, 4}, ranks=2))
    for function, word in ((5, "all"), (6, "any")):
        values = [numbers(draw, "BOOL", (5, 7)), np.array(function == 5)]
        values += [ints(one, "int64") for one in lists[0]]
        options = ("ReduceWindowOptions", {"reduceFunction": function})
        yield (f"REDUCE_WINDOW {word}", *single("REDUCE_WINDOW", values, "BOOL", options, fixed={2, 3, 4}, ranks=2))


def casts(draw: np.random.Generator) -> Iterator[Case]:
    """BITCAST."""
    for kind, to, shape, rank in (
        ("FLOAT32", "INT32", (2, 3), 2),
        ("FLOAT32", "UINT8", (2, 3), 3),
        ("INT64", "INT16", (3,), 2),
        ("UINT8", "FLOAT32", (2, 4), 1),
        ("INT16", "INT64", (3, 2, 4), 2),
        ("INT8", "UINT8", (5,), 1),
        ("FLOAT64", "INT32", (2,), 2),
    ):
        x = numbers(draw, kind, shape)
        yield (f"BITCAST {kind} to {to}", *single("BITCAST", [x], to, ("BitcastOptions", {}), ranks=rank))


def boxes(draw: np.random.Generator) -> Iterator[Case]:
    """NON_MAX_SUPPRESSION_V5 with a deviation."""
    corners = draw.uniform(0, 1, (16, 2)).astype(np.float32)
    given = np.concatenate([corners, corners + draw.uniform(0.2, 0.7, (16, 2)).astype(np.float32)], 1)
    given[3] = given[3, [2, 3, 0, 1]]
    scores = draw.uniform(0, 1, 16).astype(np.float32)
    name = "NON_MAX_SUPPRESSION_V5"
    for most, overlap, least, deviation in (
        (5, 1.0, 0.1, 0.5),
        (16, 0.6, 0.2, 0.1),
        (16, 0.5, 0.0, 2.0),
        (3, 0.3, 0.9, 0.5),
    ):
        parameters = [ints(most), *(np.float32(one) for one in (overlap, least, deviation))]
        kinds = ["INT32", "FLOAT32", "INT32"]
        label = f"{name} {most} {overlap} {least} {deviation}"
        yield (label, *single(name, [given, scores, *parameters], kinds, ranks=[1, 1, 0], fixed={2, 3, 4, 5}))
        more: Any = {"fixed": {2}, "opened": {0, 1}}
        yield (f"{label} given", *single(name, [given, scores, *parameters], kinds, ranks=[1, 1, 0], **more))
    parameters = [ints(6), *(np.float32(one) for one in (0.5, 0.1, 0.0))]
    yield (f"{name} no deviation given", *single(name, [given, scores, *parameters], kinds, ranks=[1, 1, 0], fixed={2}))
