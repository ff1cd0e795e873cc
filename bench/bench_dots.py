"""Products of small integers and of bf16 beside those of f32: ``python bench/bench_dots.py [WORD ...]``

One thread, random weights. Each line is a shape and a pair of types: billions of operations a second (a multiplication
and an addition are two), divided by what f32 reached in the same moments (both run in turn; the median of the rounds),
and the largest difference from float64, relative to the largest result; integers must be exact.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from stopwatch import seconds
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper
from tract_core.ops.reduce import Reduce, Reducer

Array = np.ndarray[Any, Any]

ROUNDS = 9
SECONDS = 0.05
"""How long one round of one of them takes, at least."""

TYPES = {
    "u8 i8": (np.uint8, np.int8, 128),
    "u8 ±127": (np.uint8, np.int8, 127),
    "i8 ±127": (np.int8, np.int8, 127),
    "u8 ±64": (np.uint8, np.int8, 64),
    "u8 u8": (np.uint8, np.uint8, 255),
    "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, 0),
}
"""The types of both factors, and the largest of the second one, which is part of the model."""

PRODUCTS = [(1, 768, 768), (4, 768, 3072), (32, 256, 256), (128, 768, 768), (128, 3072, 768), (1024, 1024, 1024)]
"""Rows, inner size, columns."""

CONVS = [(64, 64, 56, 3), (256, 256, 14, 3), (64, 256, 56, 1), (512, 512, 7, 1), (3, 64, 224, 7), (1, 96, 56, 3)]
"""Input channels of a group, output channels, size of the square, size of the window.

One input channel: as many groups as output channels.
"""


def numbers(shape: Sequence[int], dtype: Any, most: int = 1 << 8) -> Array:
    """Random ones; of integers, those of the type that are no larger than ``most``."""
    random = np.random.default_rng(0)
    if np.dtype(dtype).kind in "iu":
        ends = np.iinfo(dtype)
        return random.integers(max(ends.min, -most), min(ends.max, most), shape, dtype, endpoint=True)
    return random.standard_normal(shape).astype(dtype)


def product(shape: tuple[int, int, int], left: Any, right: Any, most: int = 0) -> tuple[CpuPlan, Array, Array]:
    """The plan, its input, and what comes out."""
    rows, depth, columns = shape
    x, weights, model = numbers((rows, depth), left), numbers((depth, columns), right, most), TypedModel()
    acc = DatumType.I32 if weights.dtype.kind in "iu" else DatumType.F32
    factors = [model.add_source("x", fact_of(x)), model.add_const("w", weights)]
    model.set_outputs(model.wire_node("product", EinSum(AxesMapping.parse("mk,kn->mn"), acc), factors))
    return CpuPlan(model, chosen("")), x, x.astype("f8") @ weights.astype("f8")


def conv(shape: tuple[int, int, int, int], left: Any, right: Any, most: int = 0) -> tuple[CpuPlan, Array, Array]:
    """The plan, its input, and what comes out: the largest number of every channel, so that nothing need be moved."""
    inputs, outputs, size, window = shape
    group = outputs if inputs == 1 else 1
    x = numbers((1, inputs * group, size, size), left)
    weights = numbers((outputs, inputs, window, window), right, most)
    model, bias = TypedModel(), np.zeros((), "i4" if weights.dtype.kind in "iu" else right)
    op = Conv(PoolSpec(DataFormat.NCHW, (window, window), SameUpper()), KernelFormat.OIHW, group)
    given = [model.add_source("x", fact_of(x)), model.add_const("w", weights), model.add_const("b", bias)]
    sums = model.wire_node("conv", op, given)
    model.set_outputs(model.wire_node("largest", Reduce((2, 3), Reducer.MAX), sums))
    before, after = (window - 1) // 2, window // 2
    wide = np.pad(x[0].astype("f8"), ((0, 0), (before, after), (before, after)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (window, window), (1, 2))
    names = "ocab,chwab->ohw" if group == 1 else "ozab,ohwab->ohw"
    wanted = np.einsum(names, weights.astype("f8"), windows, optimize=True)
    return CpuPlan(model, chosen("")), x, wanted.max(axis=(1, 2)).reshape(1, -1, 1, 1)


def fact_of(x: Array) -> Any:
    return parse_typed_fact(",".join([*map(str, x.shape), DatumType.from_numpy(x.dtype).short]))


def measure(what: str, make: Callable[..., tuple[CpuPlan, Array, Array]], shape: Any, operations: float) -> None:
    """A line for each pair of types."""
    plain, x, _ = make(shape, np.float32, np.float32)
    state = plain.spawn()
    for name, types in TYPES.items():
        plan, narrow, wanted = make(shape, *types)
        own = plan.spawn()
        found = np.asarray(own.run([narrow])[0]).astype("f8")
        error = np.abs(found - wanted).max() / np.abs(wanted).max()
        calls = partial(own.run, [narrow]), partial(state.run, [x])
        rounds = [(seconds(calls[0], SECONDS), seconds(calls[1], SECONDS)) for _ in range(ROUNDS)]
        speed = statistics.median(operations / one for one, _ in rounds) / 1e9
        ratio = statistics.median(other / one for one, other in rounds)
        shown = "x".join(map(str, shape))
        print(f"{what:8} {shown:16} {name:8} {speed:8.0f} Gop/s {ratio:6.2f} x f32 {error:9.1e}", flush=True)


def main() -> None:
    words = sys.argv[1:]
    for shape in PRODUCTS:
        if not words or "product" in words:
            measure("product", product, shape, 2.0 * prod(shape))
    for inputs, outputs, size, window in CONVS:
        if not words or "conv" in words:
            measure("conv", conv, (inputs, outputs, size, window), 2.0 * inputs * outputs * (size * window) ** 2)


if __name__ == "__main__":
    main()
