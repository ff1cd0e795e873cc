"""Images resized, boxes that are kept, diagonals, segments, intervals, Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from single import Case, numbers, single, with_ends


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from resized(draw)
    yield from boxes(draw)
    yield from diagonals(draw)
    yield from segments(draw)
    yield from others(draw)


def ints(values: Any, kind: str = "int32") -> Any:
    """Integers."""
    return np.array(values, kind)


def resized(draw: np.random.Generator) -> Iterator[Case]:
    """By sizes, and how places are counted."""
    for name, (align, half) in product(
        ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), ((False, False), (True, False), (False, True))
    ):
        table = "ResizeBilinearOptions" if "BILINEAR" in name else "ResizeNearestNeighborOptions"
        options = (table, {"alignCorners": align, "halfPixelCenters": half})
        label = f"{name} {'aligned' if align else 'half' if half else 'plain'}"
        for before, after in (
            ((3, 4), (6, 8)),
            ((5, 7), (3, 2)),
            ((2, 3), (7, 5)),
            ((3, 3), (1, 1)),
            ((1, 1), (4, 3)),
            ((4, 5), (4, 9)),
        ):
            x = numbers(draw, "FLOAT32", (2, *before, 2))
            yield (f"{label} {before} {after}", *single(name, [x, ints(after)], options=options, fixed={1}, ranks=4))
        x = numbers(draw, "FLOAT32", (1, 3, 2, 2))
        yield (f"{label} given", *single(name, [x, ints([5, 4])], options=options, ranks=4))
        yield (f"{label} open", *single(name, [x, ints([5, 4])], options=options, fixed={1}, opened={0}, ranks=4))
        if "NEAREST" in name:
            for kind in ("INT8", "UINT8", "INT16"):
                x = numbers(draw, kind, (1, 3, 4, 2))
                given = [x, ints([7, 6])]
                yield (f"{label} {kind}", *single(name, given, kind, options, fixed={1}, ranks=4, scaled=True))
            for before, after in ((2, 82), (2, 41), (2, 83), (3, 47)):
                x = np.arange(before, dtype=np.float32).reshape(1, before, 1, 1)
                given = [x, ints([after, 1])]
                yield (f"{label} {before} to {after}", *single(name, given, options=options, fixed={1}, ranks=4))


def boxes(draw: np.random.Generator) -> Iterator[Case]:
    """NON_MAX_SUPPRESSION_V4 and V5."""
    corners = draw.uniform(0, 1, (12, 2)).astype(np.float32)
    given = np.concatenate([corners, corners + draw.uniform(0.2, 0.7, (12, 2)).astype(np.float32)], 1)
    given[3] = given[3, [2, 3, 0, 1]]
    scores = draw.uniform(0, 1, 12).astype(np.float32)
    touching = np.array([[0, 0, 1, 2], [0, 0, 1, 1], [0, 1, 1, 2], [0, 5, 1, 6]], np.float32)
    for label, places, values, most, overlap, least in (
        ("some", given, scores, 5, 0.3, 0.2),
        ("all", given, scores, 12, 1.0, 0.0),
        ("few", given, scores, 12, 0.1, 0.5),
        ("none", given, scores, 4, 0.5, 2.0),
        ("half", touching, scores[:4], 4, 0.5, 0.0),
        ("below half", touching, scores[:4], 4, 0.49, 0.0),
        ("equal scores", given, np.round(scores, 1), 8, 0.4, 0.1),
    ):
        name = "NON_MAX_SUPPRESSION_V"
        parameters = [ints(most), np.float32(overlap), np.float32(least)]
        more: Any = {"fixed": {2, 3, 4, 5}}
        all_of = [places, values, *parameters]
        yield (f"{name}4 {label}", *single(f"{name}4", all_of, ["INT32", "INT32"], ranks=[1, 0], **more))
        all_of = [places, values, *parameters, np.float32(0)]
        kinds = ["INT32", "FLOAT32", "INT32"]
        yield (f"{name}5 {label}", *single(f"{name}5", all_of, kinds, ranks=[1, 1, 0], **more))
    all_of = [given, scores, ints(6), np.float32(0.4), np.float32(0.1)]
    yield (
        "NON_MAX_SUPPRESSION_V4 open",
        *single("NON_MAX_SUPPRESSION_V4", all_of, ["INT32", "INT32"], ranks=[1, 0], fixed={2}, opened={0, 1}),
    )


def diagonals(draw: np.random.Generator) -> Iterator[Case]:
    """MATRIX_DIAG and MATRIX_SET_DIAG."""
    for kind in ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8"]:
        x = numbers(draw, kind, (2, 3))
        yield (f"MATRIX_DIAG {kind}", *single("MATRIX_DIAG", [x], kind, ("MatrixDiagOptions", {}), ranks=3))
        options = ("MatrixSetDiagOptions", {})
        for rows, columns in ((3, 3), (2, 4), (4, 2)):
            given = [numbers(draw, kind, (2, rows, columns)), numbers(draw, kind, (2, min(rows, columns)))]
            label = f"MATRIX_SET_DIAG {kind} {rows} {columns}"
            yield (label, *single("MATRIX_SET_DIAG", given, kind, options, ranks=3))


def segments(draw: np.random.Generator) -> Iterator[Case]:
    """SEGMENT_SUM and UNSORTED_SEGMENT_SUM and its like."""
    for kind in ("FLOAT32", "INT32"):
        x = numbers(draw, kind, (5, 3), 4)
        given = [x, ints([0, 0, 1, 2, 2])]
        yield (f"SEGMENT_SUM {kind}", *single("SEGMENT_SUM", given, kind, ("SegmentSumOptions", {}), ranks=2))
        yield (
            f"SEGMENT_SUM {kind} constant",
            *single("SEGMENT_SUM", given, kind, ("SegmentSumOptions", {}), fixed={1}, ranks=2),
        )
        for name in ("Sum", "Prod", "Max", "Min"):
            options = (f"UnsortedSegment{name}Options", {})
            word = f"UNSORTED_SEGMENT_{name.upper()}"
            given = [x, ints([2, 0, -1, 2, 0]), ints(4)]
            yield (f"{word} {kind}", *single(word, given, kind, options, fixed={2}, ranks=2))
            yield (f"{word} {kind} given", *single(word, given, kind, options, ranks=2))
            given = [x, ints([[1, 0, 1]] * 5), ints(2)]
            yield (f"{word} {kind} elements", *single(word, given, kind, options, fixed={2}))


def others(draw: np.random.Generator) -> Iterator[Case]:
    """BUCKETIZE, FAKE_QUANT, RFFT2D, REAL, IMAG, COMPLEX_ABS."""
    for kind in ("FLOAT32", "FLOAT64", "INT32", "INT64"):
        x = numbers(draw, kind, (3, 4), 20)
        x.reshape(-1)[:2] = [10, -3]
        options: Any = ("BucketizeOptions", {"boundaries": [-3.0, 0.5, 10.0]})
        yield (f"BUCKETIZE {kind}", *single("BUCKETIZE", [x], "INT32", options, ranks=2))
    x = with_ends(numbers(draw, "FLOAT32", (9,)))
    yield ("BUCKETIZE no numbers", *single("BUCKETIZE", [x], "INT32", options, opened={0}))
    x = numbers(draw, "FLOAT32", (4, 5))
    for low, high, bits, narrow in (
        (-6.0, 6.0, 8, False),
        (0.0, 6.0, 8, False),
        (-1.3, 2.7, 4, False),
        (1.0, 4.0, 16, False),
    ):
        said = {"min": low, "max": high, "numBits": bits, "narrowRange": narrow}
        yield (
            f"FAKE_QUANT {low} {high} {bits}",
            *single("FAKE_QUANT", [x], options=("FakeQuantOptions", said), ranks=2),
        )
    for shape, lengths in (((4, 8), [4, 8]), ((2, 4, 6), [8, 4]), ((3, 5), [2, 8])):
        given = [numbers(draw, "FLOAT32", shape), ints(lengths)]
        label = f"RFFT2D {shape} {lengths}"
        yield (label, *single("RFFT2D", given, "COMPLEX64", ("Rfft2dOptions", {}), fixed={1}, ranks=len(shape)))
    z = numbers(draw, "COMPLEX64", (3, 4))
    for name in ("REAL", "IMAG", "COMPLEX_ABS"):
        yield (name, *single(name, [z], "FLOAT32", ranks=2, opened={0}))
