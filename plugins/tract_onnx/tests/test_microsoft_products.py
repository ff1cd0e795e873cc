"""Products that ONNX Runtime's tools put in the place of the standard's, against ONNX Runtime or NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import expected
from onnx_single import MICROSOFT, feeds, node_model, outputs_of, refused, same_as_onnxruntime

from tract_core.errors import CorruptModel, FactError, Unsupported


def random(seed=0):
    return np.random.default_rng(seed)


def f32(*shape, low=-1.0, high=1.0):
    return random(sum(shape)).uniform(low, high, shape).astype(np.float32)


def u8(*shape):
    return random(sum(shape)).integers(0, 255, shape, np.uint8, endpoint=True)


def i8(*shape):
    return random(sum(shape)).integers(-63, 63, shape, np.int8)  # seven bits: some machines saturate with eight


def number(value, kind=np.float32):
    return np.array(value, kind)


def same(op_type, inputs, **options):
    same_as_onnxruntime(op_type, inputs, MICROSOFT, **options)


def within_one_step(op_type, inputs, **options):
    """ONNX Runtime multiplies the scales first, and may round the other way."""
    (wanted,) = expected(node_model(op_type, inputs, MICROSOFT, **options), feeds(inputs))
    for batch in (None, "N"):
        (found,) = outputs_of(op_type, inputs, MICROSOFT, batch=batch, **options)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        distance = np.abs(found.astype(int) - wanted.astype(int))
        assert distance.max() <= 1
        assert (distance > 0).mean() < 0.05


A, B, B_COLUMNS = u8(4, 8), i8(8, 5), f32(5, low=0.01, high=0.05)
ONE = (number(0.02), number(7, np.uint8), number(0.03), number(-3, np.int8))


@pytest.mark.parametrize("per_column", [False, True])
def test_gemm(per_column):
    b_scale, b0 = (B_COLUMNS, i8(5)) if per_column else ONE[2:]
    bias = random().integers(-2000, 2000, 5, np.int32)
    inputs = [A, *ONE[:2], B, b_scale, b0, bias]
    same("QGemm", inputs)
    within_one_step("QGemm", [*inputs, number(0.05), number(100, np.uint8)], alpha=0.5)


def test_gemm_of_transposed_matrices():
    bias = random().integers(-2000, 2000, (4, 5), np.int32)
    transposed = [np.ascontiguousarray(A.T), *ONE[:2], np.ascontiguousarray(B.T), B_COLUMNS, i8(5), bias]
    (found,) = outputs_of("QGemm", transposed, MICROSOFT, transA=1, transB=1, alpha=2.0)
    product = (A.astype(int) - 7) @ (B.astype(int) - i8(5)) + bias
    np.testing.assert_allclose(found, product * 0.02 * B_COLUMNS.astype(float) * 2, rtol=1e-5)


def test_gemm_of_other_ranks():
    refused(FactError, "QGemm wants matrices", "QGemm", [u8(2, 4, 8), *ONE[:2], B, *ONE[2:]], MICROSOFT)


@pytest.mark.parametrize("shape", [(4, 8), (2, 3, 8)])
def test_matmul_integer_to_float(shape):
    a_scale, a0, b_scale, b0 = ONE
    same("MatMulIntegerToFloat", [u8(*shape), B, a_scale, b_scale, a0, b0])
    same("MatMulIntegerToFloat", [u8(*shape), B, a_scale, B_COLUMNS, a0, None, f32(5)])


def test_dynamic_quantize_matmul():
    same("DynamicQuantizeMatMul", [f32(4, 8), B, *ONE[2:]])
    same("DynamicQuantizeMatMul", [f32(2, 4, 8), B, B_COLUMNS, i8(5), f32(5)])


FP4 = [0, 0.005208333333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25]


@pytest.mark.parametrize("quant_type", [0, 1])
def test_matmul_bnb4(quant_type):
    options = {"K": 8, "N": 6, "block_size": 16, "quant_type": quant_type, "fixed": (1, 2)}
    same("MatMulBnb4", [f32(2, 4, 8), u8(24), f32(3, low=0.5)], **options)


def test_matmul_bnb4_codes():
    codes = np.arange(0, 16, 2, dtype=np.uint8) << 4 | np.arange(1, 16, 2, dtype=np.uint8)
    options = {"K": 1, "N": 16, "block_size": 16, "quant_type": 0, "fixed": (1,)}
    (found,) = outputs_of("MatMulBnb4", [np.ones((1, 1), np.float32), codes, number([2])], MICROSOFT, **options)
    np.testing.assert_allclose(found[0], 2 * np.array([*FP4, *(-value for value in FP4)]), rtol=1e-6)


def test_matmul_bnb4_is_refused():
    inputs, options = [f32(2, 8), u8(24), f32(3)], {"K": 8, "N": 6, "block_size": 16, "quant_type": 1}
    for changes, error, match in (
        ({"quant_type": 2}, Unsupported, "MatMulBnb4 with quant_type 2, known are 0, 1"),
        ({"N": 7}, CorruptModel, "24 elements of uint8 do not hold 7 rows of 8 codes"),
        ({"block_size": 0}, CorruptModel, "in blocks of 0"),
    ):
        refused(error, match, "MatMulBnb4", inputs, MICROSOFT, fixed=(1, 2), **{**options, **changes})


@pytest.mark.parametrize("zero_points", [False, True])
def test_gather_block_quantized(zero_points):
    rows, columns, block = 6, 32, 16
    data, scale = u8(rows, columns // 2), f32(rows, columns // block)
    zero = u8(rows, columns // block // 2) if zero_points else None
    places = np.array([[4, 0, 1], [-1, 5, 2]])
    inputs, options = (
        [data, places, scale, zero],
        {"block_size": block, "quantize_axis": 1, "fixed": (0, 2, 3) if zero_points else (0, 2)},
    )
    same("GatherBlockQuantized", inputs, **options)

    def spread(bytes_):
        return np.stack([bytes_ & 15, bytes_ >> 4], -1).reshape(rows, -1).astype(int)

    middle = np.repeat(spread(zero), block, 1) if zero_points else 8
    (found,) = outputs_of("GatherBlockQuantized", inputs, MICROSOFT, **options)
    np.testing.assert_allclose(found, ((spread(data) - middle) * np.repeat(scale, block, 1))[places], rtol=1e-6)


def test_gather_block_quantized_along_its_blocks():
    inputs = [u8(6, 16), np.array([0]), f32(6, 2), None]
    options = {"block_size": 16, "quantize_axis": 1, "gather_axis": 1, "fixed": (0, 2)}
    refused(Unsupported, "the axis along which blocks are", "GatherBlockQuantized", inputs, MICROSOFT, **options)
    refused(Unsupported, "with 3 bits", "GatherBlockQuantized", inputs, MICROSOFT, bits=3, fixed=(0, 2))


@pytest.mark.parametrize(
    ("activation", "attributes"),
    [
        ("Tanh", {}),
        ("Relu", {}),
        ("LeakyRelu", {"activation_alpha": 0.3}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
        ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}),
    ],
)
def test_fused_gemm(activation, attributes):
    options = {"activation": activation, "alpha": 0.5, "beta": 2.0, "transB": 1, **attributes}
    same("FusedGemm", [f32(3, 4), f32(5, 4), f32(5)], **options)


def test_fused_gemm_with_what_the_version_does_not_have():
    inputs = [f32(3, 4), f32(4, 5)]
    refused(
        Unsupported,
        "attribute 'activation' of FusedGemm is 'Floor', wanted one of",
        "FusedGemm",
        inputs,
        MICROSOFT,
        activation="Floor",
    )


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric):
    same("CDist", [f32(4, 3), f32(6, 3)], metric=metric, relative=1e-5)


def test_a_layout_for_one_machine_is_refused():
    x = f32(1, 8, 4, 4)
    refused(Unsupported, "the machine on which it saved", "ReorderOutput", [x], f"{MICROSOFT}.nchwc", channels=8)
    refused(Unsupported, "the machine on which it saved", "NhwcMaxPool", [u8(1, 4, 4, 8)], MICROSOFT)
