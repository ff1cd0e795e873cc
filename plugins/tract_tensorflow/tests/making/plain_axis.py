"""Operators that arrange elements in other axes, put tensors together, repeat and fill them, and tell of sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, file
from single import SCALED, Case, numbers, single

MOVED = "FLOAT32 INT32 INT64 INT16 INT8 UINT8 BOOL"


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from reshapes(draw)
    yield from axes(draw)
    yield from blocks(draw)
    yield from together(draw)
    yield from repeated(draw)


def ints(*values: int, kind: str = "int32") -> Any:
    """A list of integers."""
    return np.array(values, kind)


def reshapes(draw: np.random.Generator) -> Iterator[Case]:
    """The shape as a constant, as an option, and computed."""
    for kind in MOVED.split():
        x = numbers(draw, kind, (2, 3, 4))
        options = ("ReshapeOptions", {"newShape": [4, 6]})
        yield (f"RESHAPE {kind}", *single("RESHAPE", [x, ints(4, 6)], kind, options, fixed={1}, ranks=2))
    x = numbers(draw, "INT8", (2, 3, 4))
    yield ("RESHAPE scaled", *single("RESHAPE", [x, ints(4, 6)], "INT8", fixed={1}, ranks=2, scaled=True))
    x = numbers(draw, "FLOAT32", (2, 3, 4))
    yield ("RESHAPE left over", *single("RESHAPE", [x, ints(-1, 4)], fixed={1}, opened={0}, ranks=2))
    yield ("RESHAPE option", *single("RESHAPE", [x], options=("ReshapeOptions", {"newShape": [6, -1]}), ranks=2))
    yield ("RESHAPE given", *single("RESHAPE", [x, ints(3, 8)], ranks=2))
    yield ("RESHAPE given left over", *single("RESHAPE", [x, ints(12, -1)], ranks=2))
    yield ("RESHAPE nothing", *single("RESHAPE", [x[:0], ints(0, 5)], fixed={1}, ranks=2))
    yield ("RESHAPE one", *single("RESHAPE", [x[:1, :1, 0], ints()], fixed={1}, ranks=0))
    graph = [Tensor((2, 3, 4), signature=(-1, 3, -1)), Tensor((3,), "INT32"), Tensor((1,) * 3)]
    made = Graph(graph, [Op("SHAPE", [0], [1], "ShapeOptions", {"outType": 2}), Op("RESHAPE", [0, 1], [2])], [0], [2])
    yield ("RESHAPE computed", file(made), [x])


def axes(draw: np.random.Generator) -> Iterator[Case]:
    """SQUEEZE, EXPAND_DIMS, TRANSPOSE, SHAPE, RANK."""
    x = numbers(draw, "FLOAT32", (1, 3, 1, 4))
    for named, rank in (([], 2), ([0], 3), ([2], 3), ([-2, 0], 2)):
        options = ("SqueezeOptions", {"squeezeDims": named})
        yield (f"SQUEEZE {named}", *single("SQUEEZE", [x], options=options, ranks=rank))
    y = numbers(draw, "INT8", (1, 5))
    yield ("SQUEEZE scaled", *single("SQUEEZE", [y], "INT8", ("SqueezeOptions", {}), scaled=True))
    for axis in (0, 2, -1, -3):
        given = [x[0, :, 0], np.array(axis, np.int32)]
        yield (f"EXPAND_DIMS {axis}", *single("EXPAND_DIMS", given, fixed={1}, opened={0}, ranks=3))
    yield ("EXPAND_DIMS scaled", *single("EXPAND_DIMS", [y, ints(1)], "INT8", fixed={1}, scaled=True, ranks=3))
    for kind in MOVED.split():
        z = numbers(draw, kind, (2, 3, 5))
        yield (f"TRANSPOSE {kind}", *single("TRANSPOSE", [z, ints(2, 0, 1)], kind, fixed={1}, ranks=3))
    for order in ((3, 0, 2, 1), (0, 2, 1, 3), (0, 1, 3, 2)):
        z = numbers(draw, "FLOAT32", (2, 3, 4, 5))
        yield (f"TRANSPOSE {order}", *single("TRANSPOSE", [z, ints(*order)], fixed={1}, opened={0}, ranks=4))
    z = numbers(draw, "INT16", (3, 4))
    yield ("TRANSPOSE scaled", *single("TRANSPOSE", [z, ints(1, 0)], "INT16", fixed={1}, scaled=True, ranks=2))
    for kind in ("INT32", "INT64"):
        options = ("ShapeOptions", {"outType": {"INT32": 2, "INT64": 4}[kind]})
        yield (f"SHAPE {kind}", *single("SHAPE", [x], kind, options))
        yield (f"SHAPE {kind} open", *single("SHAPE", [x[0]], kind, options, opened={0}))
    yield ("RANK", *single("RANK", [x], "INT32", ranks=0))


def blocks(draw: np.random.Generator) -> Iterator[Case]:
    """Between places, channels and the batch."""
    for kind, scaled in (("FLOAT32", False), ("INT32", False), ("INT8", True), ("UINT8", True)):
        label = f"{kind}{' scaled' if scaled else ''}"
        more: Any = {"ranks": 4, "scaled": scaled}
        for block in (2, 3):
            x = numbers(draw, kind, (2, 2 * block, 3 * block, 3))
            options = ("SpaceToDepthOptions", {"blockSize": block})
            yield (f"SPACE_TO_DEPTH {label} {block}", *single("SPACE_TO_DEPTH", [x], kind, options, **more))
            x = numbers(draw, kind, (2, 2, 3, block * block * 2))
            options = ("DepthToSpaceOptions", {"blockSize": block})
            yield (f"DEPTH_TO_SPACE {label} {block}", *single("DEPTH_TO_SPACE", [x], kind, options, **more))
        x = numbers(draw, kind, (2, 4, 5, 3))
        given = [x, ints(2, 3), np.array([[1, 1], [0, 1]], np.int32)]
        yield (f"SPACE_TO_BATCH_ND {label}", *single("SPACE_TO_BATCH_ND", given, kind, fixed={1, 2}, **more))
        given = [numbers(draw, kind, (12, 3, 2, 2)), ints(2, 3), np.array([[1, 1], [0, 1]], np.int32)]
        yield (f"BATCH_TO_SPACE_ND {label}", *single("BATCH_TO_SPACE_ND", given, kind, fixed={1, 2}, **more))
    x = numbers(draw, "FLOAT32", (2, 7, 3))
    given = [x, ints(2), np.array([[0, 1]], np.int32)]
    yield ("SPACE_TO_BATCH_ND one", *single("SPACE_TO_BATCH_ND", given, fixed={1, 2}, opened={0}, ranks=3))
    given = [x[:, :, :2].repeat(2, 0), ints(4), np.array([[3, 2]], np.int32)]
    yield ("BATCH_TO_SPACE_ND one", *single("BATCH_TO_SPACE_ND", given, fixed={1, 2}, ranks=3))


def together(draw: np.random.Generator) -> Iterator[Case]:
    """CONCATENATION and PACK."""
    for kind in MOVED.split():
        given = [numbers(draw, kind, (2, count, 3)) for count in (1, 2, 4)]
        options = ("ConcatenationOptions", {"axis": 1})
        yield (f"CONCATENATION {kind}", *single("CONCATENATION", given, kind, options, ranks=3))
        given = [numbers(draw, kind, (2, 3)) for _ in range(3)]
        options = ("PackOptions", {"axis": 1, "valuesCount": 3})
        if kind != "BOOL":
            yield (f"PACK {kind}", *single("PACK", given, kind, options, ranks=3))
    x = numbers(draw, "FLOAT32", (2, 3))
    for axis in (0, -1):
        given = [x, x[::-1].copy()]
        options = ("ConcatenationOptions", {"axis": axis})
        yield (f"CONCATENATION {axis}", *single("CONCATENATION", given, options=options, opened={0, 1}, ranks=2))
        options = ("PackOptions", {"axis": axis, "valuesCount": 2})
        yield (f"PACK {axis}", *single("PACK", given, options=options, opened={0, 1}, ranks=3))
    for kind in ("INT8", "INT16", "UINT8"):
        given = [numbers(draw, kind, (2, 3)) for _ in range(2)]
        options = ("ConcatenationOptions", {"axis": 1})
        yield (f"CONCATENATION {kind} scaled", *single("CONCATENATION", given, kind, options, scaled=True, ranks=2))
    yield ("CONCATENATION other steps", *other_steps(draw))


def other_steps(draw: np.random.Generator) -> tuple[bytes, list[Any]]:
    """Bytes that are counted in steps of their own."""
    all_bytes = np.arange(256, dtype=np.uint8).reshape(2, 128)
    given = [all_bytes, draw.integers(0, 256, (2, 3)).astype(np.uint8)]
    scale, zero = SCALED["UINT8"]
    tensors = [
        Tensor((2, 128), "UINT8", scale=0.0301, zero=3),
        Tensor((2, 3), "UINT8", scale=0.1, zero=255),
        Tensor((2, 131), "UINT8", scale=scale, zero=zero),
    ]
    op = Op("CONCATENATION", [0, 1], [2], "ConcatenationOptions", {"axis": 1})
    return file(Graph(tensors, [op], [0, 1], [2])), given


def repeated(draw: np.random.Generator) -> Iterator[Case]:
    """TILE, FILL, ZEROS_LIKE, BROADCAST_TO, BROADCAST_ARGS, RANGE."""
    for kind in ["FLOAT32", "INT32", "INT64", "UINT8", "BOOL", "STRING"]:
        x = numbers(draw, kind, (2, 3))
        yield (f"TILE {kind}", *single("TILE", [x, ints(2, 3)], kind, fixed={1}, ranks=2))
    yield ("TILE scaled", *single("TILE", [numbers(draw, "INT8", (3,)), ints(2)], "INT8", scaled=True, fixed={1}))
    x = numbers(draw, "FLOAT32", (2, 3))
    yield ("TILE given", *single("TILE", [x, ints(1, 2, kind="int64")], ranks=2))
    yield ("TILE open", *single("TILE", [x, ints(3, 1)], fixed={1}, opened={0}, ranks=2))
    for kind in ["FLOAT32", "INT32", "INT64", "INT8", "INT16", "BOOL", "STRING"]:
        value = numbers(draw, kind, (1,))[0]
        yield (f"FILL {kind}", *single("FILL", [ints(2, 3), value], kind, fixed={0}, ranks=2))
    yield ("FILL given", *single("FILL", [ints(3, 2, kind="int64"), np.float32(2.5)], ranks=2))
    yield ("FILL scaled", *single("FILL", [ints(3), np.int8(5)], "INT8", scaled=True, fixed={0}))
    for kind in ("FLOAT32", "INT32", "INT64"):
        yield (f"ZEROS_LIKE {kind}", *single("ZEROS_LIKE", [numbers(draw, kind, (2, 3))], kind, ranks=2, opened={0}))
    for kind in ["FLOAT32", "INT32", "INT8", "BOOL"]:
        x = numbers(draw, kind, (3, 1))
        yield (f"BROADCAST_TO {kind}", *single("BROADCAST_TO", [x, ints(2, 3, 4)], kind, fixed={1}, ranks=3, version=2))
    given = [x, ints(2, 3, 1, kind="int64")]
    yield ("BROADCAST_TO given", *single("BROADCAST_TO", given, "BOOL", ranks=3, version=2))
    for kind in ("int32", "int64"):
        given = [ints(1, 3, 1, kind=kind), ints(3, 5, kind=kind)]
        yield (f"BROADCAST_ARGS {kind}", *single("BROADCAST_ARGS", given, kind.upper()))
        yield (f"BROADCAST_ARGS {kind} constant", *single("BROADCAST_ARGS", given, kind.upper(), fixed={0}))
    for start, end, step in ((0, 7, 2), (5, -4, -3)):
        given = [np.array(one, np.int32) for one in (start, end, step)]
        yield (f"RANGE {start} {end} {step}", *single("RANGE", given, "INT32"))
        yield (f"RANGE {start} {end} {step} constant", *single("RANGE", given, "INT32", fixed={0, 2}))
    given = [np.array(one, np.float32) for one in (0.5, 3.1, 0.25)]
    yield ("RANGE FLOAT32", *single("RANGE", given))
    given = [np.array(one, np.int64) for one in (1, 9, 3)]
    yield ("RANGE INT64", *single("RANGE", given, "INT64", fixed={0, 1, 2}))
