"""Sums and extremes along axes, the largest elements, running sums, axes turned round, different elements, types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import DTYPES
from single import Case, numbers, single, with_ends

NUMBERS = {"INT8": 9, "UINT8": 3, "INT16": 7, "INT32": 2, "INT64": 4, "FLOAT32": 0}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from reductions(draw)
    yield from extremes(draw)
    yield from running(draw)
    yield from types(draw)


def ints(values: Any, kind: str = "int32") -> Any:
    """Integers."""
    return np.array(values, kind)


def reductions(draw: np.random.Generator) -> Iterator[Case]:
    """By type, axes and whether these stay."""
    table = {
        "SUM": "FLOAT32 INT32 INT64",
        "MEAN": "FLOAT32 INT32 INT64",
        "REDUCE_MAX": "FLOAT32 INT32 INT64 INT16 INT8 UINT8",
        "REDUCE_MIN": "FLOAT32 INT32 INT64 INT16 INT8 UINT8",
        "REDUCE_PROD": "FLOAT32 INT32 INT64",
        "REDUCE_ANY": "BOOL",
        "REDUCE_ALL": "BOOL",
    }
    for name, kinds in table.items():
        for kind in kinds.split():
            x = numbers(draw, kind, (2, 3, 4), 4 if "PROD" in name else 100)
            for axes, keeps in (([1], False), ([0, 2], True), ([-1, 0, 1], False)):
                rank = 3 if keeps else 3 - len(axes)
                options = ("ReducerOptions", {"keepDims": keeps})
                label = f"{name} {kind} {axes} keeps {keeps}"
                yield (label, *single(name, [x, ints(axes)], kind, options, fixed={1}, ranks=rank))
        x = numbers(draw, kind := kinds.split()[0], (3, 5))
        options = ("ReducerOptions", {})
        yield (f"{name} open", *single(name, [x, ints([0])], kind, options, fixed={1}, opened={0}))
        yield (f"{name} one axis twice", *single(name, [x, ints([1, -1])], kind, options, fixed={1}))
        yield (f"{name} number", *single(name, [x, ints(0)], kind, options, fixed={1}))
    for name in ("REDUCE_MAX", "REDUCE_MIN"):
        for kind in ("INT8", "UINT8", "INT16"):
            given = [with_ends(numbers(draw, kind, (3, 5))), ints([1])]
            options = ("ReducerOptions", {"keepDims": True})
            yield (f"{name} {kind} scaled", *single(name, given, kind, options, fixed={1}, scaled=True, ranks=2))


def extremes(draw: np.random.Generator) -> Iterator[Case]:
    """ARG_MAX, ARG_MIN, TOPK_V2."""
    for name in ("ARG_MAX", "ARG_MIN"):
        table = "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions"
        for kind in ["FLOAT32", "INT32", "INT8", "UINT8", "BOOL"]:
            x = numbers(draw, kind, (3, 4, 5), 4)
            for axis, out in ((0, "INT32"), (-1, "INT64"), (1, "INT64")):
                options: Any = (table, {"outputType": NUMBERS[out]})
                label = f"{name} {kind} {axis} {out}"
                yield (label, *single(name, [x, ints(axis)], out, options, fixed={1}, ranks=2))
        options = (table, {"outputType": 2})
        yield (f"{name} open", *single(name, [x, ints([1])], "INT32", options, fixed={1}, opened={0}, ranks=2))
        x = numbers(draw, "INT8", (3, 4))
        yield (f"{name} scaled", *single(name, [x, ints(1)], "INT32", options, fixed={1}, scaled=True))
    for kind in ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8"]:
        x = numbers(draw, kind, (3, 7), 4)
        for count in (1, 3, 7):
            given = [x, ints(count)]
            yield (f"TOPK_V2 {kind} {count}", *single("TOPK_V2", given, [kind, "INT32"], fixed={1}, ranks=2))
    x = numbers(draw, "FLOAT32", (2, 3, 5))
    yield ("TOPK_V2 given", *single("TOPK_V2", [x, ints(2)], ["FLOAT32", "INT32"], ranks=3, opened={0}))
    given = [numbers(draw, "INT8", (6,)), ints(2)]
    yield ("TOPK_V2 scaled", *single("TOPK_V2", given, ["INT8", "INT32"], fixed={1}, scaled=True))


def running(draw: np.random.Generator) -> Iterator[Case]:
    """CUMSUM, REVERSE_V2, REVERSE_SEQUENCE, UNIQUE."""
    for kind in ("FLOAT32", "INT32", "INT64"):
        x = numbers(draw, kind, (2, 3, 4))
        for axis, exclusive, reverse in ((0, False, False), (-1, True, False), (1, False, True), (2, True, True)):
            options = ("CumsumOptions", {"exclusive": exclusive, "reverse": reverse})
            label = f"CUMSUM {kind} {axis} {exclusive} {reverse}"
            yield (label, *single("CUMSUM", [x, ints(axis)], kind, options, fixed={1}, ranks=3))
    for kind in ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8", "BOOL"]:
        x = numbers(draw, kind, (3, 4, 2))
        yield (f"REVERSE_V2 {kind}", *single("REVERSE_V2", [x, ints([1])], kind, fixed={1}, ranks=3))
        if kind not in ("INT8", "BOOL"):
            options = ("ReverseSequenceOptions", {"seqDim": 1, "batchDim": 0})
            given = [x, ints([1, 4, 2])]
            yield (f"REVERSE_SEQUENCE {kind}", *single("REVERSE_SEQUENCE", given, kind, options, ranks=3))
    options = ("ReverseSequenceOptions", {"seqDim": 0, "batchDim": 2})
    given = [numbers(draw, "FLOAT32", (4, 3, 2)), ints([2, 3], "int64")]
    yield ("REVERSE_SEQUENCE last", *single("REVERSE_SEQUENCE", given, options=options, ranks=3, opened={0}))
    yield ("REVERSE_V2 axes", *single("REVERSE_V2", [given[0], ints([0, 1])], fixed={1}, opened={0}, ranks=3))
    given = [numbers(draw, "UINT8", (4, 3)), ints([-1])]
    yield ("REVERSE_V2 scaled", *single("REVERSE_V2", given, "UINT8", fixed={1}, scaled=True, ranks=2))
    for kind in ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8"]:
        x = np.rint(numbers(draw, kind, (9,), 2)).astype(DTYPES[kind])
        for out in ("INT32", "INT64"):
            options = ("UniqueOptions", {"idxOutType": NUMBERS[out]})
            yield (f"UNIQUE {kind} {out}", *single("UNIQUE", [x], [kind, out], options, opened={0}))


CAST = "FLOAT32 FLOAT64 FLOAT16 INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 BOOL"


def types(draw: np.random.Generator) -> Iterator[Case]:
    """CAST and DEQUANTIZE."""
    for kind in CAST.split():
        x = numbers(draw, kind, (3, 4))
        if kind.startswith("FLOAT"):
            x.reshape(-1)[:6] = [0.5, -0.5, 1.5, 99.99, 0, 127]
        for to in CAST.split():
            given = np.abs(x) if to.startswith("UINT") and kind.startswith("FLOAT") else x
            label = f"CAST {kind} to {to}"
            options = ("CastOptions", {})
            yield (label, *single("CAST", [given], to, options, ranks=2))
    x = np.array([1 - 2j, 0.5j, -3], np.complex64)
    for to in ("FLOAT32", "INT32", "BOOL", "COMPLEX64"):
        yield (f"CAST COMPLEX64 to {to}", *single("CAST", [x], to, ("CastOptions", {})))
    yield ("CAST FLOAT32 to COMPLEX64", *single("CAST", [x.real], "COMPLEX64", ("CastOptions", {})))
    for kind in ("INT8", "INT16", "UINT8"):
        x = with_ends(numbers(draw, kind, (7,)))
        yield (f"CAST {kind} scaled", *single("CAST", [x], "FLOAT32", ("CastOptions", {}), scaled=True))
    x = with_ends(numbers(draw, "FLOAT32", (9,)))[1:]  # what is no number becomes 0 here, and the last integer there
    for to in ("INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL", "FLOAT16"):
        yield (f"CAST ends to {to}", *single("CAST", [x], to, ("CastOptions", {})))
    x = np.array([3e9, -3e9, 1e20, -1e20, 70000.5, -300.7, 255.9], np.float32)
    for to in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64"):
        yield (f"CAST large to {to}", *single("CAST", [x], to, ("CastOptions", {})))
    half = numbers(draw, "FLOAT16", (3, 4))
    yield ("DEQUANTIZE FLOAT16", *single("DEQUANTIZE", [half], "FLOAT32", ("DequantizeOptions", {}), ranks=2))
    yield (
        "DEQUANTIZE FLOAT16 constant",
        *single("DEQUANTIZE", [half], "FLOAT32", ("DequantizeOptions", {}), fixed={0}, ranks=2),
    )
