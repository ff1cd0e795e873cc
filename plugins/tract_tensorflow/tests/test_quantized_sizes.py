"""Operators on quantised tensors whose sizes a run tells: the results of the cases, with inputs of unknown sizes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from test_tflite_cases import archive, compare
from tract_tensorflow.tflite.ops.resize import nearest_places

import tract_core as tract
from tract_core.ops.resize import Coordinates

KINDS: Final = {"int8": "i8", "uint8": "u8", "int16": "i16", "float32": "f32"}

CASES: Final = [
    ("quantized_images", "mean INT8 (1, 2) kept"),
    ("quantized_images", "mean INT16 (0, 1, 2, 3) kept"),
    ("quantized_images", "sum UINT8 (1, 2) gone"),
    ("quantized_images", "average_pool_2d INT8 same stride 2 activation 1"),
    ("quantized_images", "average_pool_2d UINT8 valid stride 1 activation 0"),
    ("quantized_images", "max_pool_2d INT8 same stride 1 activation 3"),
    ("quantized_images", "transpose_conv INT8 same stride 2 per channel"),
    ("quantized_rows", "softmax INT8 3x10 0.05"),
    ("quantized_rows", "softmax INT16 3x10 0.05"),
    ("quantized_rows", "log_softmax INT8 3x10 0.05"),
    ("quantized_rows", "l2 INT8 3x10"),
    ("quantized_arithmetic", "add INT8 same"),
    ("quantized_arithmetic", "div INT8 same"),
    ("quantized_functions", "tanh INT16 1"),
    ("quantized_product", "rows INT8 per channel 3x16 to 8"),
    ("quantized_product", "rows INT16 one scale 2x3x9 to 1"),
    ("quantized_product", "rows INT8 one scale 2x2x6 to 7"),
    ("quantized_product", "matrices INT8 (False, True)"),
    ("dynamic_range", "rows one scale span 3x16"),
    ("dynamic_range", "conv_2d per channel same stride 2"),
    ("dynamic_range", "depthwise_conv_2d per channel same stride 1"),
    ("dynamic_range", "matrices span (True, False)"),
    ("quantized_steps", "quantize INT8"),
    ("quantized_steps", "dequantize INT8 per channel"),
]


def model(parts: dict[str, Any], inputs: list[Any], free: int) -> Any:
    """A case with the first axes of its inputs unknown, but for the last one; sizes that are the same have one name."""
    loaded = tract.tflite().load_bytes(parts["model"].tobytes())
    for slot, given in enumerate(inputs):
        known = [axis >= min(free, given.ndim - 1) for axis in range(given.ndim)]
        sizes = [
            str(size) if fixed else f"{'NHW'[axis]}{size}"
            for axis, (size, fixed) in enumerate(zip(given.shape, known, strict=True))
        ]
        loaded.set_input_fact(slot, ",".join([*sizes, KINDS[given.dtype.name]]))
    return loaded.into_model()


@pytest.mark.parametrize("free", [1, 3])
@pytest.mark.parametrize(("family", "case"), CASES)
def test_sizes_that_a_run_tells(family: str, case: str, free: int) -> None:
    parts = archive(family)[case]
    inputs = [parts[f"in{slot}"] for slot in range(sum(name.startswith("in") for name in parts))]
    for runtime in ("reference", "cpu"):
        found = tract.runtime_for_name(runtime).prepare(model(parts, inputs, free)).run(inputs)
        compare(np.asarray(found[0]), parts["out0"], (family, case))


RESIZED: Final = [
    (family, case)
    for family in ("quantized_images", "plain_image")
    for case in archive(family)
    if case.lower().startswith(("resize_bilinear", "resize_nearest")) and "in1" not in archive(family)[case]
]


@pytest.mark.parametrize(("family", "case"), RESIZED)
def test_images_whose_sizes_a_run_tells(family: str, case: str) -> None:
    parts = archive(family)[case]
    wanted = model(parts, [parts["in0"]], 3)
    runtime = "cpu" if RESIZED.index((family, case)) % 4 == 0 else "reference"
    found = tract.runtime_for_name(runtime).prepare(wanted).run([parts["in0"]])
    compare(np.asarray(found[0]), parts["out0"], (family, case))


@pytest.mark.parametrize("half", [False, True])
def test_the_nearest_in_f32_is_exact_for_sizes_so_many_times_as_large(half: bool) -> None:
    coordinates = Coordinates.TF_HALF_PIXEL_FOR_NN if half else Coordinates.ASYMMETRIC
    for factor in range(1, 17):
        for size in (*range(1, 70), 127, 1000, 4099):
            for one, other in ((size, size * factor), (size * factor, size)):
                steps = 2 * np.arange(other) + half
                np.testing.assert_array_equal(nearest_places(one, other, coordinates), steps * one // (2 * other))
