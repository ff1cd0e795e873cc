"""Convolutions, read and written, against ONNX Runtime and the established engine."""

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

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def statement(**attributes: Any) -> str:
    return f"y = conv(x, w, b{''.join(f', {name} = {value}' for name, value in attributes.items())});"


KINDS = [
    ((2, 3, 7), (4, 3, 3), {}, {"auto_pad": "SAME_UPPER"}),
    ((2, 3, 7), (4, 3, 3), {"padding": "[(0,0)]"}, {}),
    ((1, 2, 5, 6), (3, 2, 2, 3), {"padding": "[(1,0),(0,2)]"}, {"pads": [1, 0, 0, 2]}),
    ((1, 2, 5, 6), (3, 2, 2, 3), {"stride": "[2,3]"}, {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    (
        (2, 4, 9, 8),
        (6, 2, 3, 2),
        {"padding": "[(2,1),(0,0)]", "dilation": "[2,3]", "stride": "[1,2]", "groups": "2"},
        {"pads": [2, 0, 1, 0], "dilations": [2, 3], "strides": [1, 2], "group": 2},
    ),
    ((1, 3, 4, 4), (6, 1, 2, 2), {"padding": "[(0,0),(0,0)]", "groups": "0"}, {"group": 3}),
    ((1, 2, 3, 4, 5), (2, 2, 2, 1, 3), {"padding": "[(0,1),(0,0),(1,1)]"}, {"pads": [0, 0, 1, 1, 0, 1]}),
]


@pytest.mark.parametrize(("data", "kernel", "said", "onnx"), KINDS)
def test_it_is_what_onnx_runtime_computes(data, kernel, said, onnx) -> None:
    x, w, b = floats(*data), floats(*kernel), floats(kernel[0])
    expected = onnx_node("Conv", [x, w, b], **onnx)
    np.testing.assert_allclose(compute(statement(**said), x=x, w=w, b=b), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(compute(statement(**said), x=x, w=w, b=b[None]), expected, rtol=1e-5, atol=1e-5)
    symbols = ",".join(["B", str(data[1]), "H", "W", "D"][: len(data)])
    shapes = {"x": symbols, "w": ",".join(map(str, kernel)), "b": str(kernel[0])}
    found = run(read(statement(**said), shapes), x, w, b)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("border", "mode"), [("replicate", "edge"), ("reflect", "reflect"), ("reflect-even", "symmetric")]
)
def test_other_borders_are_added_to_the_data(border, mode) -> None:
    x, w = floats(1, 2, 5), floats(3, 2, 3)
    expected = onnx_node("Conv", [np.pad(x, [(0, 0), (0, 0), (1, 1)], mode=mode), w])
    found = compute(f"y = conv(x, w, border = '{border}');", x=x, w=w)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", ["0.5", "[0.5]", "[[0.5]]", "[[0.5, 1.5]]", "[0.5, 1.5]", "[[[0.5],[1.5]]]"])
def test_a_bias_of_any_rank_is_for_all_channels_or_one_for_each(bias) -> None:
    x, w = np.zeros((1, 1, 2), np.float32), floats(2, 1, 1)
    second = 1.5 if "1.5" in bias else 0.5
    expected = [[[0.5, 0.5], [second, second]]]
    np.testing.assert_array_equal(compute(f"y = conv(x, w, {bias});", x=x, w=w), expected)


def test_integers_are_summed_in_i32() -> None:
    x = np.full((1, 2, 3), 127, np.int8)
    found = compute("y = conv(x, tract_core_cast([[[127], [127]]], to = 'i8'), 1.0);", x=x)
    np.testing.assert_array_equal(found, np.full((1, 1, 3), 2 * 127 * 127 + 1, np.int32))


@pytest.mark.parametrize(
    ("body", "shape", "problem"),
    [
        (
            "conv(x, [[[1.0]]], stride = [1, 1])",
            "1,1,4",
            "argument 'stride' of conv has 2 entries, wanted 1, one per axis, or none",
        ),
        ("conv(x, [[[1.0]]], padding = [(0,0), (1,1)])", "1,1,4", "argument 'padding' of conv has 2 entries, wanted 1"),
        (
            "conv(x, [[[1.0]]], padding = [(0,0,0)])",
            "1,1,4",
            "argument 'padding' of conv has a tuple of 3, wanted a pair",
        ),
        (
            "conv(x, [[[1.0]]], border = 'wrap')",
            "1,1,4",
            "argument 'border' of conv is 'wrap', wanted one of 'constant', 'ignore', 'replicate'",
        ),
        ("conv(x, [[1.0]])", "1,1,4", "data 1,1,4,f32 and filter 1,1,f32, wanted two tensors of one rank"),
        ("conv(x, [[[1.0]]], groups = 0)", "1,C,4", "groups = 0 stands for the channels, of which 1,C,4,f32 has C"),
        (
            "conv(x, [[[1.0]], [[1.0]]], [[[0.0], [1.0]], [[2.0], [3.0]]])",
            "1,1,4",
            "the bias is 2,2,1,f32, wanted one number, one for each of 2 channels, or what stretches to 1,2,4,f32",
        ),
        ("conv(x, [[[1.0, 2.0, 3.0]]], border = 'reflect-even', padding = [(2,0)])", "1,1,4", "up to one element"),
    ],
)
def test_what_does_not_fit_is_refused(body, shape, problem) -> None:
    with pytest.raises(tract.errors.ModelError, match=problem):
        read(f"y = {body};", {"x": shape})


test_cases = cycle_of_cases(
    "conv",
    others=["Conv-same-lower", "Conv-ceil", "Conv-NHWC", "Conv-CHW", "Conv-HWC", "Conv-NCHW-HWIO", "Conv-NCHW-OHWI"],
    refused=["Conv-same-lower", "Conv-ceil"],
)


@interchange
@pytest.mark.parametrize(("data", "kernel", "said", "onnx"), KINDS)
def test_what_is_written_means_the_same_there(data, kernel, said, onnx, tmp_path) -> None:
    x, w, b = floats(*data), floats(*kernel), floats(kernel[0])
    shapes = {"x": ",".join(["B", str(data[1]), "H", "W", "D"][: len(data)])}
    body = f"w = {w.tolist()}; b = {b.tolist()}; {statement(**said)}"
    model = read(body, shapes)
    model.save(tmp_path / "m.tar", format_name="nnef")
    (found,) = established.run(tmp_path / "m.tar", [x])
    np.testing.assert_allclose(found, run(model, x), rtol=1e-5, atol=1e-5)
    established.write(tmp_path / "m.tar", tmp_path / "theirs.tar")
    np.testing.assert_allclose(run(tract.load(tmp_path / "theirs.tar"), x), found, rtol=1e-5, atol=1e-5)
