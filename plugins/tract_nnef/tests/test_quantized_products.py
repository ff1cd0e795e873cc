"""Products and convolutions of quantised tensors, against ONNX Runtime, NumPy and the established engine."""

from __future__ import annotations

from typing import Any

import established
import numpy as np
import pytest
from documents import compute, read, run
from established import interchange
from onnx_node import onnx_node

import tract_core as tract

RNG = np.random.default_rng(8)

U8, I8, I32, F32 = np.uint8, np.int8, np.int32, np.float32


def integers(kind: Any, *shape: int) -> np.ndarray[Any, Any]:
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max, shape, dtype=kind, endpoint=True)


def halved(weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Weights of seven bits: with AVX2 and no more, ONNX Runtime adds pairs of products in i16, which saturates."""
    return weights // 2


def line(name: str, zero: int, scale: float, signed: bool, bits: int = 8) -> str:
    known = f"bits = {bits}, signed = {str(signed).lower()}, symmetric = {str(zero == 0).lower()}"
    return f'"{name}": zero_point_linear_quantize(zero_point = {zero}, scale = {scale}, {known});\n'


EINSUM = (
    "y = tract_core_einsum_q([a, b], expr = 'mk,kn,,,,,,,->mn', acc = 'i32', output = 'u8', bias = 0,"
    " a0 = 3, a_scale = 0.125, b0 = 1, b_scale = 0.5, c0 = 7, c_scale = 16.0);"
)


def test_a_product_of_quantised_matrices_is_what_onnx_runtime_computes() -> None:
    a, b = integers(U8, 5, 4), halved(integers(I8, 4, 3))
    parameters = [np.array(one) for one in (F32(0.125), U8(3), b, F32(0.5), I8(1), F32(16), U8(7))]
    expected = onnx_node("QLinearMatMul", [a, *parameters], opset=10)
    np.testing.assert_array_equal(compute(EINSUM, a=a, b=b), expected)


@pytest.mark.parametrize("to", ["", line("y", 7, 16.0, signed=False)])
@pytest.mark.parametrize("transpose", [False, True])
def test_matmul_takes_parameters_from_graph_quant(to, transpose) -> None:
    a, b = integers(U8, 5, 4), integers(I8, 4, 3)
    quantization = line("a", 3, 0.125, signed=False) + line("b", 1, 0.5, signed=True) + to
    body = f"y = matmul(a, b, transposeB = {str(transpose).lower()});"
    found = compute(body, a=a, b=b.T.copy() if transpose else b, quantization=quantization)
    sums = (a.astype(I32) - 3) @ (b.astype(I32) - 1)
    expected = np.clip(np.round(sums * 0.125 * 0.5 / 16) + 7, 0, 255) if to else sums
    assert found.dtype == (U8 if to else I32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("to", ["", line("y", 7, 16.0, signed=False)])
@pytest.mark.parametrize("body", ["linear(a, b, bias)", "matmul(a, b, transposeB = true) + bias"])
def test_an_integer_bias_counts_in_the_steps_of_the_sum(body, to) -> None:
    """As torch-to-nnef writes the quantised layers of PyTorch: nothing says of what scale the bias is."""
    a, b, bias = integers(U8, 5, 4), integers(I8, 3, 4), integers(I32, 1, 3) // (1 << 20)
    quantization = line("a", 3, 0.125, signed=False) + line("b", 1, 0.5, signed=True) + to
    found = compute(f"y = {body};", a=a, b=b, bias=bias, quantization=quantization)
    sums = ((a.astype(I32) - 3) @ (b.astype(I32) - 1).T + bias) * 0.125 * 0.5
    expected = np.clip(np.round(sums / 16) + 7, 0, 255) if to else sums
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("to", ["", line("y", 7, 64.0, signed=False)])
def test_conv_takes_parameters_from_graph_quant(to) -> None:
    x, w = integers(U8, 2, 3, 7), integers(I8, 4, 3, 3)
    quantization = line("x", 3, 0.125, signed=False) + line("w", 1, 0.5, signed=True) + to
    found = compute("y = conv(x, w, stride = [2]);", x=x, w=w, quantization=quantization)
    sums = onnx_node("ConvInteger", [x, w, np.array(3, U8), np.array(1, I8)], pads=[1, 1], strides=[2])
    expected = np.clip(np.round(sums * 0.125 * 0.5 / 64) + 7, 0, 255) if to else sums
    np.testing.assert_array_equal(found, expected)


def qconv(groups: str, extra: str = "") -> str:
    return (
        "y = tract_core_qconv(x, w, bias, dilation = [1], stride = [1], border = 'constant', padding = [(1, 1)],"
        f" b0 = 3, b_scale = 0.125, a0 = 1, a_scale = 0.5, c0 = 7, c_scale = 64.0, output_dt = 'u8'{groups}{extra});"
    )


@pytest.mark.parametrize(("said", "group"), [(", groups = 2", 2), (", group = 2", 2), ("", 4), (", groups = 1", 1)])
def test_a_quantised_convolution_is_what_onnx_runtime_computes(said, group) -> None:
    x, w, bias = integers(U8, 2, 4, 7), halved(integers(I8, 4, 4 // group, 3)), integers(I32, 4) // (1 << 20)
    parameters = [np.array(one) for one in (F32(0.125), U8(3), w, F32(0.5), I8(1), F32(64), U8(7), bias)]
    expected = onnx_node("QLinearConv", [x, *parameters], opset=10, pads=[1, 1], group=group)
    np.testing.assert_array_equal(compute(qconv(said), x=x, w=w, bias=bias), expected)


@pytest.mark.parametrize("axes", ["[0, 1, 0, 1, 0, 1]", "[1, 0, 0, 1, 0, 1]", "[0, 1, 1, 0, 1, 0]"])
def test_the_old_product_names_its_axes_by_number(axes) -> None:
    numbers = eval(axes)
    a, b = (RNG.normal(size=shape).astype(F32) for shape in ((2, 3), (3, 4)))
    expected = a @ b if numbers[4] == 0 else (a @ b).T
    given = {"a": a if numbers[0] == 0 else a.T.copy(), "b": b if numbers[2] == 0 else b.T.copy()}
    found = compute(f"y = tract_core_matmul(a, b, axes = {axes});", **given)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_old_product_shares_all_other_axes() -> None:
    a, b = RNG.normal(size=(5, 2, 3)).astype(F32), RNG.normal(size=(3, 5, 4)).astype(F32)
    found = compute("y = tract_core_matmul(a, b, axes = [1, 2, 0, 2, 0, 2]);", a=a, b=b)
    np.testing.assert_allclose(found, np.einsum("bmk,kbn->mbn", a, b), rtol=1e-5)


@pytest.mark.parametrize("bias", [np.array(5, I32), np.arange(4, dtype=I32)])
def test_the_old_quantised_product(bias) -> None:
    a, b = integers(I8, 2, 3), integers(I8, 3, 4)
    said = "axes = [0, 1, 0, 1, 0, 1], a0 = 2, a_scale = 0.5, b_scale = 0.25, c0 = -3, c_scale = 32.0"
    found = compute(f"y = tract_core_qmatmul(a, b, bias, {said}, output_type = 'i8');", a=a, b=b, bias=bias)
    sums = (a.astype(I32) - 2) @ b.astype(I32) + bias
    np.testing.assert_array_equal(found, np.clip(np.round(sums * 0.125 / 32) - 3, -128, 127))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("tract_core_matmul(a, a, axes = [0, 1])", r"axes \[0, 1\] of 3,3,f32 and 3,3,f32, wanted 6"),
        ("tract_core_matmul(a, a, axes = [0, 0, 0, 1, 0, 1])", "name one axis of a tensor twice"),
        ("tract_core_matmul(a, a, axes = [0, 2, 0, 1, 0, 1])", "axis 2 is outside of a tensor of 2 axes"),
        ("tract_core_einsum_q([a], expr = 'ab->ab', acc = 'i32')", "1 inputs, wanted 2"),
        ("matmul(cast<integer>(a), q)", "3,3,i64 and .*, wanted both quantised, or real numbers"),
    ],
)
def test_what_does_not_fit_is_refused(body, problem) -> None:
    with pytest.raises(tract.errors.TractError, match=problem):
        read(
            f"y = {body};",
            {"a": "3,3", "q": "3,3"},
            kinds={"q": "u8"},
            quantization=line("q", 3, 0.125, signed=False),
        )


def test_what_the_established_engine_writes_is_read() -> None:
    """Data and filters are cast to types that ``graph.quant`` gives: the integers stay as they are."""
    body = """
    x_cast = tract_core_cast(x, to = "u8");
    w = tract_core_cast([[[1, -2, 3], [4, 5, -6]]], to = "i8");
    c_bias = tract_core_cast(0, to = "i32");
    x_zero = tract_core_cast(3, to = "i32");
    w_zero = tract_core_cast([1], to = "i32");
    y_zero = tract_core_cast(7, to = "i32");
    c = tract_core_qconv(x_cast, w, c_bias, dilation = [1], stride = [1], border = "constant", groups = 1,
        padding = [(1, 1)], b0 = x_zero, b_scale = 0.125, a0 = w_zero, a_scale = [0.5], c0 = y_zero, c_scale = 4.0,
        output_dt = "u8");
    y = c;
    """
    x, w = integers(U8, 2, 2, 5), np.array([[[1, -2, 3], [4, 5, -6]]], I8)
    quantization = line("x_cast", 3, 0.125, signed=False) + line("w", 1, 0.5, signed=True)
    parameters = [np.array(one) for one in (F32(0.125), U8(3), w, F32(0.5), I8(1), F32(4), U8(7))]
    expected = onnx_node("QLinearConv", [x, *parameters], opset=10, pads=[1, 1])
    np.testing.assert_array_equal(compute(body, x=x, quantization=quantization), expected)


@interchange
def test_a_quantised_product_means_the_same_there(tmp_path) -> None:
    a, b = integers(U8, 5, 4), integers(I8, 4, 3)
    model = read(EINSUM, {"a": "M,4", "b": "4,N"}, kinds={"a": "u8", "b": "i8"})
    model.save(tmp_path / "m.tar", format_name="nnef")
    (found,) = established.run(tmp_path / "m.tar", [a, b])
    np.testing.assert_allclose(found, run(model, a, b), atol=1)  # the established engine rounds in fixed point


@interchange
@pytest.mark.parametrize("group", [1, 2, 4])
def test_a_quantised_convolution_means_the_same_there(group, tmp_path) -> None:
    x, w = integers(U8, 2, 4, 7), integers(I8, 4, 4 // group, 3)
    body = f"w = tract_core_cast({w.tolist()}, to = 'i8'); bias = tract_core_cast([1, 2, 3, 4], to = 'i32');"
    model = read(body + qconv(f", groups = {group}"), {"x": "B,4,S"}, kinds={"x": "u8"})
    model.save(tmp_path / "m.tar", format_name="nnef")
    (found,) = established.run(tmp_path / "m.tar", [x])
    np.testing.assert_allclose(found, run(model, x), atol=1)


CAST = "q = tract_core_cast({}, to = 'u8'); y = tract_core_cast(q, to = '{}');"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (np.array([3, 10, 255], U8), [3, 10, 255]),
        (np.array([0, 2, 3], I32), [0, 2, 3]),
        (np.array([0, 0.5, 1, 100, -100], F32), [3, 7, 11, 255, 0]),
    ],
)
def test_integers_that_are_cast_to_a_quantised_type_are_stored_as_they_are(given, stored) -> None:
    quantization = line("q", 3, 0.125, signed=False)
    for kind in ("u8", "i32"):
        np.testing.assert_array_equal(compute(CAST.format("x", kind), x=given, quantization=quantization), stored)
    real = (np.array(stored, F32) - 3) * 0.125
    np.testing.assert_array_equal(compute(CAST.format("x", "f32"), x=given, quantization=quantization), real)
