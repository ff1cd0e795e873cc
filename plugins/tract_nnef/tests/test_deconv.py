"""Deconvolutions, read and written, against ONNX Runtime and the established engine."""

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

RNG = np.random.default_rng(4)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def outputs_first(w: np.ndarray[Any, Any], group: int) -> np.ndarray[Any, Any]:
    """ONNX's filters, and the standard's, have the inputs of all groups first, then the outputs of one."""
    parts = w.reshape(group, -1, *w.shape[1:]).swapaxes(1, 2)
    return parts.reshape(-1, *parts.shape[2:])


KINDS = [
    ((2, 3, 7), (3, 4, 3), {"padding": "[(0,0)]"}, {}, 1),
    ((2, 3, 7), (3, 4, 3), {"padding": "[(1,0)]", "stride": "[2]"}, {"pads": [1, 0], "strides": [2]}, 1),
    ((1, 4, 5), (4, 3, 2), {"padding": "[(0,0)]", "stride": "[2]", "groups": "2"}, {"strides": [2], "group": 2}, 2),
    ((1, 3, 5), (3, 1, 2), {"padding": "[(0,0)]", "stride": "[2]", "groups": "0"}, {"strides": [2], "group": 3}, 3),
    (
        (2, 3, 4, 5),
        (3, 2, 3, 3),
        {"padding": "[(1,1),(1,1)]", "stride": "[2,2]", "output_shape": "[8,9]"},
        {"pads": [1, 1, 1, 1], "strides": [2, 2], "output_padding": [1, 0]},
        1,
    ),
    (
        (2, 3, 4, 5),
        (3, 2, 3, 2),
        {"padding": "[(1,1),(0,2)]", "dilation": "[2,1]"},
        {"pads": [1, 0, 1, 2], "dilations": [2, 1]},
        1,
    ),
    ((1, 2, 3, 2, 2), (2, 1, 2, 1, 2), {"padding": "[(0,0),(0,0),(0,0)]"}, {}, 1),
]


def statement(said: dict[str, str]) -> str:
    return f"y = deconv(x, w, b{''.join(f', {name} = {value}' for name, value in said.items())});"


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_onnx_runtime_computes(kind) -> None:
    data, kernel, said, onnx, group = kind
    x, w, b = floats(*data), floats(*kernel), floats(kernel[1] * group)
    expected = onnx_node("ConvTranspose", [x, w, b], **onnx)
    given = {"x": x, "w": outputs_first(w, group), "b": b}
    np.testing.assert_allclose(compute(statement(said), **given), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [one for one in KINDS if one[1][0] != one[1][1]])
@pytest.mark.parametrize("known", [False, True])
def test_the_layout_of_the_standard_is_taken_where_only_that_fits(kind, known) -> None:
    data, kernel, said, onnx, group = kind
    x, w, b = floats(*data), floats(*kernel), floats(kernel[1] * group)
    expected = onnx_node("ConvTranspose", [x, w, b], **onnx)
    if known:
        found = compute(f"w = {w.tolist()}; {statement(said)}", x=x, b=b)
    else:
        found = compute(statement(said), x=x, w=w, b=b)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_an_empty_padding_gives_the_input_times_the_stride() -> None:
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    w = np.array([[[1, 2, 4]]], np.float32)
    whole = onnx_node("ConvTranspose", [x, w], strides=[2])  # 11 elements, of which one is too many
    np.testing.assert_array_equal(compute("y = deconv(x, w, stride = [2]);", x=x, w=w), whole[..., :10])
    gaps = onnx_node("ConvTranspose", [x, w[..., :1]], strides=[2], output_padding=[1])
    np.testing.assert_array_equal(compute("y = deconv(x, [[[1.0]]], stride = [2]);", x=x), gaps)


@pytest.mark.parametrize(
    ("said", "begin", "size"),
    [
        ("output_shape = [1, 1, 9]", 1, 9),  # one before, one after, as a convolution of 9 elements would have
        ("output_shape = [10]", 0, 10),
        ("padding = [(1, 1)], output_shape = [7]", 1, 7),
        ("padding = [(0, 0)], output_shape = [1, 1, 11]", 0, 11),
    ],
)
def test_a_shape_says_how_much_of_what_is_written_is_kept(said, begin, size) -> None:
    x, w = floats(1, 1, 5), floats(1, 1, 3)
    whole = onnx_node("ConvTranspose", [x, w], strides=[2])
    found = compute(f"y = deconv(x, w, stride = [2], {said});", x=x, w=w)
    np.testing.assert_allclose(found, whole[..., begin : begin + size], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("output_shape = [1, 2]", "output_shape has 2 sizes, wanted those of all axes, or the spatial"),
        ("output_shape = [S]", "wanted a number of elements"),
        ("padding = [(9, 9)]", "the output would have -7 elements"),
        ("border = 'reflect'", "argument 'border' of deconv is 'reflect', wanted one of 'constant', 'ignore'"),
    ],
)
def test_what_does_not_fit_is_refused(said, problem) -> None:
    with pytest.raises(tract.errors.TractError, match=problem):
        read(f"y = deconv(x, [[[1.0, 2.0, 3.0]]], {said});", {"x": "1,1,9", "s": "S"})


def test_a_symbolic_size_can_be_asked_for() -> None:
    model = read(
        "y = deconv(x, [[[1.0, 2.0]]], stride = [2], padding = [(0, 0)], output_shape = [2 * S + 1]);", {"x": "1,1,S"}
    )
    np.testing.assert_array_equal(run(model, np.array([[[1, 3]]], np.float32)), [[[1, 2, 3, 6, 0]]])


@pytest.mark.parametrize("shape", ["2,3,4", "2,C,S"])
@pytest.mark.parametrize("normalize", [False, True])
def test_debox_spreads_elements_over_their_windows(shape, normalize) -> None:
    x = floats(2, 3, 4)
    ones = np.full((3, 1, 3), 1 / 3 if normalize else 1, np.float32)
    expected = onnx_node("ConvTranspose", [x, ones], strides=[2], pads=[1, 1], group=3)
    said = "size = [1,1,3], stride = [1,1,2], padding = [(0,0),(0,0),(1,1)]"
    model = read(f"y = debox(x, {said}, normalize = {str(normalize).lower()});", {"x": shape})
    np.testing.assert_allclose(run(model, x), expected, rtol=1e-5, atol=1e-6)


def test_debox_can_spread_over_any_axes() -> None:
    x = floats(3, 2)
    expected = np.zeros((4, 2))
    expected[:3] += x
    expected[1:] += x
    found = compute("y = debox(x, size = [2, 1], padding = [(0,0), (0,0)]);", x=x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_huge_window_costs_nothing_until_it_is_run() -> None:
    model = read(
        "y = debox(x, size = [1, 1, 100000, 100000], padding = [(0,0), (0,0), (0,0), (0,0)]);", {"x": "1,9,1,1"}
    )
    assert str(model.output_fact(0)) == "1,9,100000,100000,f32"


test_cases = cycle_of_cases("deconv", others=["Deconv-same-lower", "Deconv-NHWC"])


@interchange
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_means_the_same_there(kind, tmp_path) -> None:
    data, kernel, said, _, group = kind
    x, w, b = floats(*data), floats(*kernel), floats(kernel[1] * group)
    model = read(
        f"w = {outputs_first(w, group).tolist()}; b = {b.tolist()}; {statement(said)}", {"x": ",".join(map(str, data))}
    )
    model.save(tmp_path / "m.tar", format_name="nnef")
    (found,) = established.run(tmp_path / "m.tar", [x])
    np.testing.assert_allclose(found, run(model, x), rtol=1e-5, atol=1e-5)
    established.write(tmp_path / "m.tar", tmp_path / "theirs.tar")
    np.testing.assert_allclose(run(tract.load(tmp_path / "theirs.tar"), x), found, rtol=1e-5, atol=1e-5)


@interchange
def test_elements_that_are_added_where_some_are_cut_want_no_sizes_there(tmp_path) -> None:
    said = "padding = [(1,1),(1,1)], stride = [2,2], output_shape = [2 * H, 2 * W]"
    x, w = floats(1, 3, 4, 5), floats(2, 3, 3, 3)
    model = read(f"w = {w.tolist()}; y = deconv(x, w, {said});", {"x": "B,3,H,W"})
    model.save(tmp_path / "m.tar", format_name="nnef")
    (found,) = established.run(tmp_path / "m.tar", [x])
    np.testing.assert_allclose(found, run(model, x), rtol=1e-5, atol=1e-5)
