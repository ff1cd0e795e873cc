"""Pools, read and written, against ONNX Runtime, NumPy and the established engine."""

from __future__ import annotations

from typing import Any

import established
import numpy as np
import pytest
from cycles import cycle_of_cases
from documents import compute, read, run
from established import interchange
from onnx_node import onnx_node

import tract_core as tract

RNG = np.random.default_rng(6)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


KINDS = [
    ((2, 3, 7), "size = [1,1,3]", {"kernel_shape": [3], "auto_pad": "SAME_UPPER"}),
    ((2, 3, 7), "size = [1,1,3], padding = [(0,0),(0,0),(0,0)]", {"kernel_shape": [3]}),
    (
        (1, 2, 5, 6),
        "size = [1,1,3,2], padding = [(0,0),(0,0),(2,1),(0,1)], stride = [1,1,2,3]",
        {"kernel_shape": [3, 2], "pads": [2, 0, 1, 1], "strides": [2, 3]},
    ),
    (
        (1, 2, 7, 6),
        "size = [1,1,2,3], stride = [1,1,2,1], dilation = [1,1,1,2]",
        {"kernel_shape": [2, 3], "pads": [0, 2, 1, 2], "strides": [2, 1], "dilations": [1, 2]},
    ),
    ((1, 1, 3, 4, 2), "size = [1,1,2,2,2], padding = [(0,0),(0,0),(0,0),(0,0),(0,0)]", {"kernel_shape": [2, 2, 2]}),
]
SYMBOLS = ("N", "C", "D", "H", "W")


@pytest.mark.parametrize(("shape", "said", "onnx"), KINDS)
@pytest.mark.parametrize("border", ["ignore", "constant"])
def test_the_largest_element_is_never_beyond_the_border(shape, said, onnx, border) -> None:
    x = floats(*shape) - 3
    expected = onnx_node("MaxPool", [x], **onnx)
    body = f"y = max_pool(x, {said}, border = '{border}');"
    np.testing.assert_array_equal(compute(body, x=x), expected)
    np.testing.assert_array_equal(run(read(body, {"x": ",".join(SYMBOLS[: len(shape)])}), x), expected)


@pytest.mark.parametrize(("shape", "said", "onnx"), KINDS)
@pytest.mark.parametrize("border", ["ignore", "constant"])
def test_a_mean_counts_what_is_beyond_the_border_unless_that_is_ignored(shape, said, onnx, border) -> None:
    x = floats(*shape)
    expected = onnx_node("AveragePool", [x], opset=19, count_include_pad=int(border == "constant"), **onnx)
    for body in (
        f"y = avg_pool(x, {said}, border = '{border}');",
        f"y = box(x, {said}, border = '{border}', normalize = true);",
    ):
        np.testing.assert_allclose(compute(body, x=x), expected, rtol=1e-5, atol=1e-6)
        found = run(read(body, {"x": ",".join(SYMBOLS[: len(shape)])}), x)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("shape", "said", "onnx"), KINDS)
def test_sums_and_root_mean_squares(shape, said, onnx) -> None:
    x = floats(*shape)
    count = np.prod(onnx["kernel_shape"])
    means = onnx_node("AveragePool", [x], opset=19, count_include_pad=1, **onnx)
    np.testing.assert_allclose(compute(f"y = box(x, {said});", x=x), means * count, rtol=1e-5, atol=1e-5)
    squares = onnx_node("AveragePool", [x * x], opset=19, **onnx)
    found = compute(f"y = rms_pool(x, {said}, border = 'ignore');", x=x)
    np.testing.assert_allclose(found, np.sqrt(squares), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("border", "mode"), [("replicate", "edge"), ("reflect", "reflect")])
def test_other_borders_are_added_to_the_data(border, mode) -> None:
    x = floats(1, 2, 5)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1)], mode=mode)
    for name, onnx in (("max_pool", "MaxPool"), ("avg_pool", "AveragePool")):
        expected = onnx_node(onnx, [padded], kernel_shape=[3])
        found = compute(f"y = {name}(x, size = [1,1,3], border = '{border}');", x=x)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("shape", ["2,3,5,4", "N,C,H,W"])
@pytest.mark.parametrize("body", ["(z, y) = max_pool_with_index(x, {});", "y = argmax_pool(x, {});"])
def test_places_are_counted_within_a_channel(shape, body) -> None:
    x = floats(2, 3, 5, 4)
    model = read(body.format("size = [1,1,2,3], padding = [(0,0),(0,0),(1,0),(0,0)]"), {"x": shape})
    places = run(model, x)
    assert places.dtype == np.int64
    flat = x.reshape(2, 3, 20)
    found = np.take_along_axis(flat, places.reshape(2, 3, -1), 2).reshape(places.shape)
    np.testing.assert_array_equal(found, onnx_node("MaxPool", [x], kernel_shape=[2, 3], pads=[1, 0, 0, 0]))


@pytest.mark.parametrize(
    ("size", "moved"), [([1, 2, 3, 1], (0, 3, 1, 2)), ([2, 1, 1, 3], (1, 2, 0, 3)), ([1, 3, 1, 2], (0, 2, 1, 3))]
)
def test_windows_slide_over_any_axes(size, moved) -> None:
    x = floats(3, 4, 5, 6)
    back = np.argsort(moved)
    kernel = [size[axis] for axis in moved[2:]]
    for name, onnx in (("max_pool", "MaxPool"), ("avg_pool", "AveragePool")):
        expected = onnx_node(onnx, [x.transpose(moved).copy()], kernel_shape=kernel).transpose(back)
        found = compute(f"y = {name}(x, size = {size}, padding = [(0,0),(0,0),(0,0),(0,0)]);", x=x)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_places_are_counted_within_a_channel_where_channels_are_last() -> None:
    x = floats(2, 4, 3, 2)
    places = compute("y = argmax_pool(x, size = [1,2,2,1], padding = [(0,0),(0,0),(0,0),(0,0)]);", x=x)
    flat = x.transpose(0, 3, 1, 2).reshape(2, 2, 12)
    found = np.take_along_axis(flat, places.transpose(0, 3, 1, 2).reshape(2, 2, -1), 2)
    expected = onnx_node("MaxPool", [x.transpose(0, 3, 1, 2).copy()], kernel_shape=[2, 2])
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("max_pool(x, size = [3])", "argument 'size' of max_pool has 1 entries, wanted 3, one per axis"),
        (
            "box(x, size = [1,1,3], stride = [2])",
            "argument 'stride' of box has 1 entries, wanted 3, one per axis, or none",
        ),
        ("box(x, size = [1,1,9], padding = [(0,0),(0,0),(0,0)])", "does not fit into 4"),
        ("max_pool(x, size = [1,1,0])", "has an entry below 1"),
        (
            "max_pool(x, size = [1,1,2], border = 'mirror')",
            "argument 'border' of max_pool is 'mirror', wanted one of 'constant'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(body, problem) -> None:
    with pytest.raises(tract.errors.TractError, match=problem):
        read(f"y = {body};", {"x": "1,2,4"})


_ODD = ["MaxPool-ceil", "MaxPool-same-lower", "SumPool-ceil", "SumPool-HWC", "SumPool-CHW"]
_PLACES = ["MaxPool-indices", "MaxPool-zeros-indices", "MaxPool-NHWC"]
test_cases = cycle_of_cases("pool", others=_ODD, refused=[*_ODD, *_PLACES])


@interchange
@pytest.mark.parametrize(("shape", "said", "onnx"), KINDS)
@pytest.mark.parametrize(
    "kind", ["max_pool(x, {}, border = 'ignore')", "avg_pool(x, {}, border = 'ignore')", "box(x, {})"]
)
def test_what_is_written_means_the_same_there(shape, said, onnx, kind, tmp_path) -> None:
    x = floats(*shape)
    model = read(f"y = {kind.format(said)};", {"x": ",".join(map(str, shape))})
    model.save(tmp_path / "m.tar", format_name="nnef")
    (found,) = established.run(tmp_path / "m.tar", [x])
    np.testing.assert_allclose(found, run(model, x), rtol=1e-5, atol=1e-6)
    established.write(tmp_path / "m.tar", tmp_path / "theirs.tar")
    np.testing.assert_allclose(run(tract.load(tmp_path / "theirs.tar"), x), found, rtol=1e-5, atol=1e-6)
