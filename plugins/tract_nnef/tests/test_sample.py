"""Elements taken from chosen places and put back there, against NumPy and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from documents import compute, read, run
from onnx_node import onnx_node

import tract_core as tract

RNG = np.random.default_rng(10)
SAID = "size = [1,1,2,3], stride = [1,1,2,2], padding = [(0,0),(0,0),(0,1),(1,0)]"
LARGEST = f"index = argmax_pool(x, {SAID});"


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", ["2,3,5,6", "N,C,H,W"])
def test_samples_at_the_places_of_the_largest_elements_are_these(shape) -> None:
    x = floats(2, 3, 5, 6)
    expected = onnx_node("MaxPool", [x], kernel_shape=[2, 3], strides=[2, 2], pads=[0, 1, 1, 0])
    found = run(read(f"{LARGEST} y = sample(x, index, {SAID});", {"x": shape}), x)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", ["2,3,5,6", "N,C,H,W"])
def test_elements_are_added_to_their_places(shape) -> None:
    x = floats(2, 3, 5, 6)
    body = f"{LARGEST} z = sample(x, index, {SAID}); y = desample(z, index, {SAID}, output_shape = [{shape}]);"
    found = run(read(body, {"x": shape}), x)
    index = compute(LARGEST.replace("index =", "y ="), x=x).reshape(6, -1)
    expected = np.zeros((6, 30))
    for row, places in enumerate(index):
        for place in places:
            expected[row, place] += x.reshape(6, 30)[row, place]
    np.testing.assert_allclose(found, expected.reshape(x.shape), rtol=1e-6)


@pytest.mark.parametrize("wanted", ["", ", output_shape = [1, 1, 4, 4]", ", output_shape = [1, 1, 4, 5]"])
def test_windows_or_a_shape_say_how_large_the_output_is(wanted) -> None:
    x = floats(1, 1, 4, 4)
    said = "size = [1,1,2,2], stride = [1,1,2,2], padding = [(0,0),(0,0),(0,0),(0,0)]"
    values, places = compute(f"(y, z) = max_pool_with_index(x, {said});", outputs="y, z", x=x)
    found = compute(f"y = desample(v, p, {said}{wanted});", v=values, p=places)
    sizes = np.array([1, 1, 4, 5 if "5" in wanted else 4])
    expected = np.zeros(sizes)
    expected.reshape(-1)[places.reshape(-1)] = values.reshape(-1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("sample(x, i, size = [1, 2, 1])", "windows over batch or channels"),
        ("sample(x, i, size = [2])", "argument 'size' of sample has 1 entries, wanted 3"),
        ("sample(x, i, size = [1, 1, 2], stride = [1, 1, 2])", "the index is"),
        ("desample(x, i, size = [1, 1, 2], output_shape = [8])", "output_shape has 1 sizes, wanted 3"),
        ("sample(x, x, size = [1, 1, 2])", "places are integers"),
    ],
)
def test_what_does_not_fit_is_refused(body, problem) -> None:
    with pytest.raises(tract.errors.TractError, match=problem):
        read(f"y = {body};", {"x": "1,2,4", "i": "1,2,4"}, kinds={"i": "i64"})
