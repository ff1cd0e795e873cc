"""Makes ``tflite_refused.npz``: files of one operator that are wrong, or that are not taken. See `make.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file
from single import single

ONES = np.ones((2, 4, 6), np.float32)
IMAGE = np.ones((1, 4, 6, 2), np.float32)


def ints(*values: int) -> Any:
    """A list of integers."""
    return np.array(values, np.int32)


def refused() -> Iterator[tuple[str, bytes]]:
    """What each file is, and the file."""

    def one(label: str, name: str, inputs: list[Any], options: Any = None, **more: Any) -> tuple[str, bytes]:
        return label, single(name, inputs, more.pop("outputs", "FLOAT32"), options, **more)[0]

    yield one("two sizes left over", "RESHAPE", [ONES, ints(-1, -1)], fixed={1})
    yield one("an axis twice", "TRANSPOSE", [ONES, ints(0, 0, 1)], fixed={1})
    yield one("axes left out", "TRANSPOSE", [ONES, ints(1, 0)], fixed={1})
    bounds = [ONES, ints(0, 0), ints(1, 1)]
    yield one("a stride of 0", "STRIDED_SLICE", [*bounds, ints(1, 0)], fixed={1, 2, 3})
    options = ("StridedSliceOptions", {"ellipsisMask": 3})
    yield one("two ellipses", "STRIDED_SLICE", [*bounds, ints(1, 1)], options, fixed={1, 2, 3})
    yield one("too many parts", "STRIDED_SLICE", [ONES[0, 0], *[ints(0, 0)] * 2, ints(1, 1)], fixed={1, 2, 3})
    yield one("fewer places than axes", "SLICE", [ONES, ints(0), ints(1)], fixed={1, 2})
    yield one("an axis outside", "CONCATENATION", [ONES, ONES], ("ConcatenationOptions", {"axis": 3}))
    options = ("SplitVOptions", {"numSplits": 2})
    given = [ONES, ints(1, 2), np.array(1, np.int32)]
    yield one("pieces that do not add up", "SPLIT_V", given, options, fixed={1, 2}, outputs=["FLOAT32"] * 2)
    yield one(
        "pieces below nothing", "SPLIT_V", [ONES, ints(5, -2), given[2]], options, fixed={1, 2}, outputs=["FLOAT32"] * 2
    )
    options = ("UnpackOptions", {"num": 3, "axis": 0})
    yield one("more outputs than places", "UNPACK", [ONES], options, outputs=["FLOAT32"] * 3)
    yield one("a block of nothing", "SPACE_TO_DEPTH", [IMAGE], ("SpaceToDepthOptions", {"blockSize": 0}))
    yield one("blocks that do not come out even", "SPACE_TO_DEPTH", [IMAGE], ("SpaceToDepthOptions", {"blockSize": 4}))
    pads = np.zeros((2, 2), np.int32)
    yield one("blocks of nothing", "SPACE_TO_BATCH_ND", [IMAGE, ints(0, 1), pads], fixed={1, 2})
    both = {"alignCorners": True, "halfPixelCenters": True}
    yield one("corners and halves", "RESIZE_BILINEAR", [IMAGE, ints(2, 2)], ("ResizeBilinearOptions", both), fixed={1})
    said = {"filterHeight": 2, "filterWidth": 2, "strideH": 0, "strideW": 1}
    yield one("a pool without steps", "AVERAGE_POOL_2D", [IMAGE], ("Pool2DOptions", said))
    options = ("FullyConnectedOptions", {"weightsFormat": 1})
    yield one("shuffled weights", "FULLY_CONNECTED", [ONES, ONES[0]], options, fixed={1})
    options = ("FakeQuantOptions", {"min": 0.0, "max": 1.0, "numBits": 1})
    yield one("one bit", "FAKE_QUANT", [ONES], options)
    options = ("FakeQuantOptions", {"min": 1.0, "max": 1.0, "numBits": 8})
    yield one("ends that are one", "FAKE_QUANT", [ONES], options)
    yield one("no distance", "DILATE", [ONES, ints(1, 0, 1), np.float32(0)], fixed={1, 2})
    yield one("bytes that are too few", "BITCAST", [np.ones((2, 3), np.uint8)], ("BitcastOptions", {}))
    windows = [np.array(sizes, np.int64) for sizes in ((2, 300, 300), (1, 1, 1), (1, 1, 1))]
    for label, number in (("a large window", 1), ("windows joined by nothing", 0)):
        options = ("ReduceWindowOptions", {"reduceFunction": number})
        yield one(label, "REDUCE_WINDOW", [ONES, np.float32(0), *windows], options, fixed={1, 2, 3, 4})
    yield one("axes that are computed", "SUM", [ONES, ints(1)])
    options = ("GatherOptions", {"axis": 0, "batchDims": 2})
    yield one("batches behind the axis", "GATHER", [ONES, np.zeros((2, 4), np.int32)], options)
    given = [np.ones((3, 4), np.float32), np.ones(3, np.float32), np.array(2, np.int32), np.float32(0.5), np.float32(0)]
    yield one("boxes without a number", "NON_MAX_SUPPRESSION_V4", given, outputs=["INT32", "INT32"])
    weights = np.ones((3, 2, 2, 2), np.float32)
    options = ("TransposeConvOptions", {"strideH": 1, "strideW": 1})
    yield one("a shape that is given", "TRANSPOSE_CONV", [ints(1, 4, 6, 3), weights, IMAGE], options, fixed={1})
    yield one("another batch", "TRANSPOSE_CONV", [ints(2, 4, 6, 3), weights, IMAGE], options, fixed={0, 1})
    yield "other steps", other_steps()
    yield "a body of two operators", two_operators()


def other_steps() -> bytes:
    """Bytes with a sign, counted in steps of their own."""
    tensors = [Tensor((2,), "INT8", scale=scale, zero=0) for scale in (0.1, 0.2)]
    tensors.append(Tensor((4,), "INT8", scale=0.1, zero=0))
    return file(Graph(tensors, [Op("CONCATENATION", [0, 1], [2], "ConcatenationOptions", {})], [0, 1], [2]))


def two_operators() -> bytes:
    """A reduction by more than one operator."""
    numbers = [Tensor(()) for _ in range(4)]
    body = Graph(numbers, [Op("STABLEHLO_ADD", [0, 1], [2]), Op("STABLEHLO_ABS", [2], [3])], [0, 1], [3])
    op = Op("STABLEHLO_REDUCE", [0, 1], [2], "StablehloReduceOptions", {"dimensions": [0], "bodySubgraphIndex": 1})
    return file(Graph([Tensor((3,)), const(np.float32(0)), Tensor(())], [op], [0], [2]), body)


if __name__ == "__main__":
    np.savez_compressed(
        Path(__file__).parents[1] / "tflite_refused.npz",
        **{label: np.frombuffer(content, np.uint8) for label, content in refused()},
    )
