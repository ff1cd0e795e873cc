"""Elements taken from places, written to places, and chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file
from single import Case, numbers, single


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from gathers(draw)
    yield from scatters(draw)
    yield from chosen(draw)


def gathers(draw: np.random.Generator) -> Iterator[Case]:
    """GATHER, GATHER_ND, EMBEDDING_LOOKUP."""
    for kind in ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8", "BOOL", "STRING"]:
        shape = (5,) if kind == "STRING" else (5, 3)
        given = [numbers(draw, kind, shape), draw.integers(0, 5, (4,)).astype(np.int32)]
        yield (f"GATHER {kind}", *single("GATHER", given, kind, ("GatherOptions", {}), ranks=len(shape)))
        if kind != "BOOL":
            places = draw.integers(0, 3, (2, 2, len(shape))).astype(np.int32)
            yield (f"GATHER_ND {kind}", *single("GATHER_ND", [given[0], places], kind, ranks=2))
    x = numbers(draw, "FLOAT32", (2, 3, 4, 5))
    for axis, batch, shape in (
        (1, 0, (2, 2)),
        (-1, 0, ()),
        (1, 1, (2, 3)),
        (2, 1, (2, 2)),
        (3, 2, (2, 3, 2)),
        (3, 1, (2,)),
    ):
        places = draw.integers(0, 3, shape).astype(np.int64)
        options = ("GatherOptions", {"axis": axis, "batchDims": batch})
        rank = 3 + len(shape) - batch
        label = f"GATHER axis {axis} batch {batch} of {len(shape)}"
        yield (label, *single("GATHER", [x, places], options=options, ranks=rank))
        yield (f"{label} open", *single("GATHER", [x, places], options=options, opened={0, 1}, ranks=rank))
    given = [numbers(draw, "INT8", (5, 3)), draw.integers(0, 5, (4,)).astype(np.int32)]
    yield ("GATHER scaled", *single("GATHER", given, "INT8", ("GatherOptions", {}), ranks=2, scaled=True, fixed={1}))
    for depth in (1, 2, 4):
        places = draw.integers(0, 2, (3, depth)).astype(np.int64)
        yield (f"GATHER_ND depth {depth}", *single("GATHER_ND", [x, places], ranks=5 - depth, fixed={1}))
    for kind in ("FLOAT32", "INT8", "UINT8"):
        places = np.array([3, 0, 1], np.int32)
        given = [places, numbers(draw, kind, (4, 2, 3))]
        yield (f"EMBEDDING_LOOKUP {kind}", *single("EMBEDDING_LOOKUP", given, kind, fixed={1}, ranks=3))
    for label, scale in (("one scale", 0.1), ("scales", [0.1, 0.2, 0.3, 0.05])):
        table = const(draw.integers(-127, 128, (4, 5)), "INT8", scale=scale, zero=0)
        tensors = [Tensor((3,), "INT32"), table, Tensor((3, 5))]
        graph = Graph(tensors, [Op("EMBEDDING_LOOKUP", [0, 1], [2], version=3)], [0], [2])
        yield (f"EMBEDDING_LOOKUP bytes {label}", file(graph), [places])


def scatters(draw: np.random.Generator) -> Iterator[Case]:
    """SCATTER_ND, SPARSE_TO_DENSE, ONE_HOT."""
    shape = np.array([4, 3], np.int32)
    for kind in ["FLOAT32", "INT32", "INT64", "INT8", "UINT8", "BOOL"]:
        places = np.array([[1], [3], [1]], np.int32)
        given = [places, numbers(draw, kind, (3, 3), 30), shape]
        yield (f"SCATTER_ND {kind}", *single("SCATTER_ND", given, kind, fixed={2}, ranks=2))
        yield (f"SCATTER_ND {kind} given", *single("SCATTER_ND", given, kind, ranks=2))
    places = np.array([[1, 2], [3, 0]], np.int32)
    yield (
        "SCATTER_ND elements",
        *single("SCATTER_ND", [places, numbers(draw, "FLOAT32", (2,)), shape], fixed={0, 2}, ranks=2),
    )
    for kind in ["FLOAT32", "INT32", "INT64", "INT8", "UINT8"]:
        for label, at, out in (
            ("one", np.array(2, np.int32), [5]),
            ("list", np.array([0, 3], np.int32), [5]),
            ("rows", np.array([[0, 1], [2, 0]], np.int32), [3, 2]),
        ):
            count = () if at.ndim == 0 else (2,)
            given = [at, np.array(out, np.int32), numbers(draw, kind, count), numbers(draw, kind, ())]
            options = ("SparseToDenseOptions", {"validateIndices": False})
            name = f"SPARSE_TO_DENSE {kind} {label}"
            yield (name, *single("SPARSE_TO_DENSE", given, kind, options, fixed={1}, ranks=len(out)))
    given = [np.array([1, 2], np.int64), np.array([4], np.int64), np.float32(2), np.float32(-1)]
    yield ("SPARSE_TO_DENSE one value", *single("SPARSE_TO_DENSE", given, fixed={1, 2, 3}))
    for kind in ["FLOAT32", "INT32", "INT64", "INT8", "UINT8", "BOOL"]:
        places = np.array([[0, 2, 1], [3, -1, 7]], np.int32)
        values = [np.array(one, numbers(draw, kind, ()).dtype) for one in (1, 0)]
        given = [places, np.array(4, np.int32), *values]
        options = ("OneHotOptions", {"axis": -1})
        yield (f"ONE_HOT {kind}", *single("ONE_HOT", given, kind, options, fixed={1, 2, 3}, ranks=3))
    values = [np.array(one, np.float32) for one in (2.5, -1)]
    for axis in (0, 1):
        given = [places.astype(np.int64), np.array(3, np.int32), *values]
        options = ("OneHotOptions", {"axis": axis})
        yield (f"ONE_HOT axis {axis}", *single("ONE_HOT", given, options=options, ranks=3))


def chosen(draw: np.random.Generator) -> Iterator[Case]:
    """SELECT, SELECT_V2, WHERE."""
    truths = numbers(draw, "BOOL", (3, 4))
    for kind in ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8", "BOOL"]:
        a, b = numbers(draw, kind, (3, 4)), numbers(draw, kind, (3, 4))
        yield (f"SELECT {kind}", *single("SELECT", [truths, a, b], kind, ranks=2))
        yield (f"SELECT_V2 {kind}", *single("SELECT_V2", [truths, a, b], kind, ranks=2))
    a, b = numbers(draw, "FLOAT32", (3, 4)), numbers(draw, "FLOAT32", (3, 4))
    yield ("SELECT rows", *single("SELECT", [truths[:, 0], a, b], ranks=2, opened={0, 1, 2}))
    yield ("SELECT one", *single("SELECT", [truths[0, 0], a, b], ranks=2))
    yield ("SELECT_V2 stretched", *single("SELECT_V2", [truths[:, :1], a[:1], b[0, 0]], ranks=2))
    a, b = numbers(draw, "INT8", (3, 4)), numbers(draw, "INT8", (3, 4))
    yield ("SELECT_V2 scaled", *single("SELECT_V2", [truths, a, b], "INT8", ranks=2, scaled=True))
    for kind in ["BOOL", "FLOAT32", "INT32", "INT64", "INT8", "UINT8", "UINT32"]:
        for shape in ((7,), (2, 3, 2)):
            x: Any = numbers(draw, kind, shape, 1)
            x = np.rint(x / 3) if kind == "FLOAT32" else x
            yield (f"WHERE {kind} {len(shape)}", *single("WHERE", [x], "INT64", ranks=2))
    yield ("WHERE open", *single("WHERE", [x[:, :1]], "INT64", ranks=2, opened={0}))
