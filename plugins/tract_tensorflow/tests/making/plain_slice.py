"""Parts of tensors, and tensors made larger at their ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from single import Case, numbers, single


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from slices(draw)
    yield from strided(draw)
    yield from pieces(draw)
    yield from pads(draw)
    yield from updates(draw)


def ints(values: Any, kind: str = "int32") -> Any:
    """Integers."""
    return np.array(values, kind)


def slices(draw: np.random.Generator) -> Iterator[Case]:
    """SLICE."""
    for kind in ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8", "BOOL", "STRING"]:
        given = [numbers(draw, kind, (3, 4, 5)), ints([1, 0, 2]), ints([2, -1, 1])]
        yield (f"SLICE {kind}", *single("SLICE", given, kind, fixed={1, 2}, shape=(2, 4, 1)))
    x = numbers(draw, "FLOAT32", (3, 4, 5))
    given = [x, ints([1, 0, 2]), ints([2, -1, 3])]
    for fixed in ((), (1,), (2,)):
        yield (f"SLICE constants {fixed}", *single("SLICE", given, fixed=fixed, shape=(2, 4, 3)))
    given = [x, ints([0, 1, 2], "int64"), ints([-1, 2, -1], "int64")]
    yield ("SLICE open", *single("SLICE", given, fixed={1, 2}, opened={0}, shape=(3, 2, 3)))
    given = [numbers(draw, "INT8", (4,)), ints([1]), ints([2])]
    yield ("SLICE scaled", *single("SLICE", given, "INT8", fixed={1, 2}, scaled=True, shape=(2,)))
    given = [numbers(draw, "FLOAT32", (2, 1, 2, 1, 3)), ints([1, 0, 0, 0, 1]), ints([1, 1, 2, 1, -1])]
    yield ("SLICE five axes", *single("SLICE", given, fixed={1, 2}, shape=(1, 1, 2, 1, 2)))


BOUNDS: list[tuple[str, list[int], list[int], list[int], dict[str, int], int]] = [
    ("plain", [0, 1, 2], [2, 4, 5], [1, 2, 1], {}, 3),
    ("negative", [-2, -3, -4], [-1, 4, -1], [1, 1, 2], {}, 3),
    ("far", [-9, 0, 2], [9, 99, 50], [1, 3, 1], {}, 3),
    ("backwards", [2, 3, -1], [0, -9, 1], [-1, -2, -1], {}, 3),
    ("begin mask", [1, 1, 1], [2, 3, 4], [1, 1, -1], {"beginMask": 5}, 3),
    ("end mask", [1, 1, 3], [2, 3, 4], [1, 1, -1], {"endMask": 5}, 3),
    ("shrink", [1, 0, -1], [2, 4, 9], [1, 1, 1], {"shrinkAxisMask": 5}, 1),
    ("shrink all", [1, 2, 3], [0, 0, 0], [1, 1, 1], {"shrinkAxisMask": 7}, 0),
    ("fewer", [1], [3], [1], {}, 3),
    ("fewer shrink", [-1], [0], [1], {"shrinkAxisMask": 1}, 2),
    ("ellipsis first", [0, 1], [0, 4], [1, 1], {"ellipsisMask": 1}, 3),
    ("ellipsis", [1, 0, 2], [2, 0, 3], [1, 1, 1], {"ellipsisMask": 2, "shrinkAxisMask": 4}, 2),
    ("new axis", [0, 0, 1], [0, 2, 3], [1, 1, 1], {"newAxisMask": 1}, 4),
    ("new last axis", [0, 0], [0, 0], [1, 1], {"ellipsisMask": 1, "newAxisMask": 2}, 4),
    ("new and shrink", [1, 0, 1], [0, 0, 3], [1, 1, 1], {"newAxisMask": 2, "shrinkAxisMask": 1}, 3),
]


def strided(draw: np.random.Generator) -> Iterator[Case]:
    """STRIDED_SLICE."""
    x = numbers(draw, "FLOAT32", (3, 4, 5))
    for label, begin, end, stride, masks, rank in BOUNDS:
        given = [x, ints(begin), ints(end), ints(stride)]
        options = ("StridedSliceOptions", masks)
        name = "STRIDED_SLICE"
        yield (f"{name} {label}", *single(name, given, options=options, fixed={1, 2, 3}, ranks=rank))
        yield (f"{name} {label} open", *single(name, given, options=options, fixed={1, 2, 3}, opened={0}, ranks=rank))
        if label != "begin mask":  # of which LiteRT finds another size before it runs
            yield (f"{name} {label} given", *single(name, given, options=options, fixed={3}, ranks=rank))
    for kind in ["INT32", "INT64", "INT16", "INT8", "UINT8", "BOOL", "STRING"]:
        given = [numbers(draw, kind, (3, 4)), ints([0, 1]), ints([3, 4]), ints([2, 1])]
        yield (f"STRIDED_SLICE {kind}", *single("STRIDED_SLICE", given, kind, fixed={1, 2, 3}, ranks=2))
    given = [numbers(draw, "UINT8", (3, 4)), ints([0, 1]), ints([3, 4]), ints([2, 1])]
    yield ("STRIDED_SLICE scaled", *single("STRIDED_SLICE", given, "UINT8", fixed={1, 2, 3}, ranks=2, scaled=True))
    given = [x, ints([1, 1, 2]), ints([1, 2, 3]), ints([1, 1, 2])]
    options: Any = ("StridedSliceOptions", {"offset": True})
    yield ("STRIDED_SLICE offset", *single("STRIDED_SLICE", given, options=options, fixed={1, 2, 3}, ranks=3))
    given = [x, ints([0, -2, 9]), ints([0, 2, 9]), ints([1, 1, 1])]
    options = ("StridedSliceOptions", {"shrinkAxisMask": 1, "beginMask": 1})
    yield ("STRIDED_SLICE nothing", *single("STRIDED_SLICE", given, options=options, fixed={1, 2, 3}, ranks=2))


def pieces(draw: np.random.Generator) -> Iterator[Case]:
    """SPLIT, SPLIT_V, UNPACK."""
    for kind in ["FLOAT32", "INT32", "INT16", "INT8", "UINT8"]:
        given = [np.array(1, np.int32), numbers(draw, kind, (2, 6, 3))]
        options: Any = ("SplitOptions", {"numSplits": 3})
        yield (f"SPLIT {kind}", *single("SPLIT", given, [kind] * 3, options, fixed={0}, ranks=3))
        options = ("UnpackOptions", {"num": 3, "axis": 2})
        if kind != "INT16":
            yield (f"UNPACK {kind}", *single("UNPACK", given[1:], [kind] * 3, options, ranks=2))
        given = [given[1], ints([2, 1, 3], "int64"), np.array(1, np.int32)]
        options = ("SplitVOptions", {"numSplits": 3})
        yield (f"SPLIT_V {kind}", *single("SPLIT_V", given, [kind] * 3, options, fixed={1, 2}, ranks=3))
    given = [np.array(-1, np.int32), numbers(draw, "INT8", (2, 4))]
    options = ("SplitOptions", {"numSplits": 2})
    yield ("SPLIT scaled", *single("SPLIT", given, ["INT8"] * 2, options, fixed={0}, scaled=True, ranks=2))
    x = numbers(draw, "FLOAT32", (2, 6, 3))
    yield ("SPLIT open", *single("SPLIT", [given[0] - 1, x], ["FLOAT32"] * 2, options, fixed={0}, opened={1}, ranks=3))
    given = [x, ints([2, -1]), np.array(-2, np.int32)]
    options = ("SplitVOptions", {"numSplits": 2})
    yield ("SPLIT_V left over", *single("SPLIT_V", given, ["FLOAT32"] * 2, options, fixed={1, 2}, ranks=3))
    yield (
        "SPLIT_V open",
        *single("SPLIT_V", given, ["FLOAT32"] * 2, options, fixed={1, 2}, opened={0}, ranks=3),
    )
    options = ("UnpackOptions", {"num": 2, "axis": 0})
    yield ("UNPACK open", *single("UNPACK", [x], ["FLOAT32"] * 2, options, opened={0}, ranks=2))


def pads(draw: np.random.Generator) -> Iterator[Case]:
    """PAD, PADV2, MIRROR_PAD."""
    around = ints([[1, 0], [0, 2], [1, 1]])
    for kind in ["FLOAT32", "INT32", "INT64", "INT8", "UINT8", "INT16"]:
        x = numbers(draw, kind, (2, 3, 4))
        if kind != "INT16":
            yield (f"PAD {kind}", *single("PAD", [x, around], kind, fixed={1}, ranks=3))
            given = [x, around, numbers(draw, kind, (1,))]
            yield (f"PADV2 {kind}", *single("PADV2", given, kind, fixed={1, 2}, ranks=3))
        for mode in (0, 1):
            options = ("MirrorPadOptions", {"mode": mode})
            name = f"MIRROR_PAD {kind} {('reflect', 'symmetric')[mode]}"
            yield (name, *single("MIRROR_PAD", [x, around], kind, options, fixed={1}, ranks=3))
    for kind in ("INT8", "UINT8", "INT16"):
        x = numbers(draw, kind, (2, 3, 4))
        yield (f"PAD {kind} scaled", *single("PAD", [x, around], kind, fixed={1}, ranks=3, scaled=True))
        given = [x, around, numbers(draw, kind, (1,))]
        yield (f"PADV2 {kind} scaled", *single("PADV2", given, kind, fixed={1, 2}, ranks=3, scaled=True))
    x = numbers(draw, "FLOAT32", (2, 3, 4))
    yield ("PAD given", *single("PAD", [x, around], ranks=3))
    yield ("PAD open", *single("PAD", [x, around.astype(np.int64)], fixed={1}, opened={0}, ranks=3))
    yield ("PADV2 given", *single("PADV2", [x, around, np.float32(7)], ranks=3))
    options = ("MirrorPadOptions", {"mode": 1})
    most = ints([[2, 2], [3, 1], [0, 4]])
    yield ("MIRROR_PAD most", *single("MIRROR_PAD", [x, most], options=options, fixed={1}, opened={0}, ranks=3))


def updates(draw: np.random.Generator) -> Iterator[Case]:
    """DYNAMIC_UPDATE_SLICE."""
    name = "DYNAMIC_UPDATE_SLICE"
    for kind in ["FLOAT32", "INT32", "INT64", "INT8", "BOOL"]:
        given = [numbers(draw, kind, (4, 5, 2)), numbers(draw, kind, (2, 3, 2)), ints([1, 2, 0])]
        yield (f"{name} {kind}", *single(name, given, kind, ranks=3))
    given = [numbers(draw, "FLOAT32", (4, 5)), numbers(draw, "FLOAT32", (2, 3)), ints([-1, 9])]
    yield (f"{name} outside", *single(name, given, ranks=2))
    yield (f"{name} constant", *single(name, [*given[:2], ints([0, 2])], fixed={2}, ranks=2))
    given = [numbers(draw, "FLOAT32", (1, 6, 3)), numbers(draw, "FLOAT32", (1, 1, 3)), ints([0, 5, 0])]
    yield (f"{name} cache", *single(name, given, ranks=3))
