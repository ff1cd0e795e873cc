"""The operators that ONNX Runtime adds, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx_check import expected
from onnx_single import MICROSOFT, feeds, node_model, outputs_of, refused, same_as_onnxruntime

from tract_core.errors import CorruptModel, FactError, Unsupported

RANDOM = np.random.default_rng(0)


def f32(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def same(op_type, inputs, **options):
    same_as_onnxruntime(op_type, inputs, MICROSOFT, **options)


X = f32(4, 2, 6)


def test_activations():
    same("BiasGelu", [X, f32(6)])
    same("Gelu", [X])
    same("FastGelu", [X])
    same("FastGelu", [X, f32(6)])
    same("QuickGelu", [X])
    same("QuickGelu", [X], alpha=0.7)


def test_operators_that_onnx_once_had():
    same_as_onnxruntime("ScaledTanh", [X], "", opset=6, alpha=0.5, beta=2.0)
    same_as_onnxruntime("ParametricSoftplus", [X], "", opset=6, alpha=0.5, beta=2.0)
    same_as_onnxruntime("Scatter", [f32(3, 4), np.array([[0, 2]]), f32(1, 2)], "", opset=9, axis=1)
    (found,) = outputs_of("ConstantFill", [], "", opset=1, value=2.5, shape=[2, 1])
    np.testing.assert_array_equal(found, np.full((2, 1), 2.5, np.float32), strict=True)
    options = {"opset": 7, "value": 3.0, "dtype": TensorProto.INT64, "extra_shape": [5]}
    (found,) = outputs_of("ConstantFill", [X], "", batch="N", **options)
    np.testing.assert_array_equal(found, np.full((*X.shape, 5), 3), strict=True)
    (found,) = outputs_of("ConstantFill", [np.array([4, 2])], "", input_as_shape=1, **options)
    np.testing.assert_array_equal(found, np.full((4, 2, 5), 3), strict=True)
    refused(CorruptModel, "'extra_shape' is \\[-1\\], wanted sizes", "ConstantFill", [X], "", extra_shape=[-1])
    (found,) = outputs_of("ConstantLike", [X], "", batch="N", value=2.5, dtype=TensorProto.INT32)
    np.testing.assert_array_equal(found, np.full(X.shape, 2, np.int32), strict=True)
    (found,) = outputs_of("ConstantLike", [], "", value=2.5, shape=[2, 1])
    np.testing.assert_array_equal(found, np.full((2, 1), 2.5, np.float32), strict=True)
    (found,) = outputs_of("Rsqrt", [np.array([4.0, 0.25], np.float32)], "")
    assert found.tolist() == [0.5, 2.0]
    refused(CorruptModel, r"'shape' is \[-2\]", "ConstantLike", [], "", shape=[-2])


def test_layer_norm_in_a_file_that_is_older_than_it():
    same_as_onnxruntime("LayerNormalization", [X, f32(6), f32(6)], "", opset=11, epsilon=0.1)


def test_simplified_layer_norm():
    same_as_onnxruntime("SimplifiedLayerNormalization", [X, f32(6)], "", outputs=2, epsilon=0.1)
    same_as_onnxruntime("SimplifiedLayerNormalization", [X, f32(2, 6)], "", axis=1)
    (found,) = outputs_of("SimplifiedLayerNormalization", [X, np.ones(6, np.float32)], MICROSOFT)
    np.testing.assert_allclose(found, X / np.sqrt((X**2).mean(axis=-1, keepdims=True) + 1e-5), rtol=1e-5)


@pytest.mark.parametrize("epsilon", [1e-12, 0.1])
def test_skip_norms(epsilon):
    skip, scale, beta, bias = f32(4, 2, 6), f32(6), f32(6), f32(6)
    for inputs in (
        [X, skip, scale],
        [X, skip, scale, beta],
        [X, skip, scale, beta, bias],
        [X, skip, scale, None, bias],
    ):
        assert_norm("SkipLayerNormalization", inputs, epsilon)
    for inputs in ([X, skip, scale], [X, skip, scale, bias]):
        assert_norm("SkipSimplifiedLayerNormalization", inputs, epsilon)
    same("SkipLayerNormalization", [X, f32(1, 2, 6), scale], epsilon=epsilon, symbolic=False)


def assert_norm(op_type, inputs, epsilon):
    """The result and the sum as ONNX Runtime gives them; it leaves the statistics empty."""
    given = feeds(inputs)
    wanted = expected(node_model(op_type, inputs, MICROSOFT, outputs=4, epsilon=epsilon), given)
    found = outputs_of(op_type, inputs, MICROSOFT, batch="N", outputs=4 if op_type[4] == "L" else 1, epsilon=epsilon)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-5)
    if len(found) == 4:
        np.testing.assert_allclose(found[3], wanted[3], rtol=1e-6)
        np.testing.assert_allclose(found[1], wanted[3].mean(axis=-1, keepdims=True), rtol=1e-4, atol=1e-6)
        variance = wanted[3].var(axis=-1, keepdims=True)
        np.testing.assert_allclose(found[2], 1 / np.sqrt(variance + epsilon), rtol=1e-4)


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        ((4, 2, 3), (4, 3, 5), {"alpha": 0.5}),
        ((4, 3, 2), (4, 3, 5), {"transA": 1}),
        ((4, 2, 3), (4, 5, 3), {"transB": 1, "alpha": -2.0}),
        ((4, 2, 3), (2, 3, 5), {"transBatchA": 1}),
        ((3, 2, 4), (2, 3, 5), {"transBatchA": 1, "transA": 1}),
        ((2, 4, 3), (3, 2, 5), {"transBatchB": 1}),
        ((4, 2, 3), (5, 4, 3), {"transBatchB": 1, "transB": 1}),
        ((2, 3), (3, 4), {}),
    ],
)
def test_fused_matmul(a, b, options):
    same("FusedMatMul", [f32(*a), f32(*b)], symbolic=False, **options)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Relu", []),
        ("Tanh", []),
        ("Sigmoid", []),
        ("LeakyRelu", [0.1]),
        ("Clip", [-0.1, 0.3]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
def test_fused_conv(activation, parameters):
    image, kernel = f32(1, 2, 5, 5), f32(3, 2, 3, 3)
    options = {
        "activation": activation,
        "pads": [1, 0, 0, 1],
        **({"activation_params": parameters} if parameters else {}),
    }
    same("FusedConv", [image, kernel, f32(3)], fixed=(1,), **options)
    same("FusedConv", [image, kernel, f32(3), f32(1, 3, 4, 4)], fixed=(1,), **options)


def test_fused_conv_refuses():
    image, kernel = f32(1, 2, 5, 5), f32(3, 2, 3, 3)
    refused(
        CorruptModel,
        "Clip takes 2 'activation_params', found 0",
        "FusedConv",
        [image, kernel],
        MICROSOFT,
        activation="Clip",
    )
    refused(
        Unsupported,
        "attribute 'activation' of FusedConv is 'X', wanted one of",
        "FusedConv",
        [image, kernel],
        MICROSOFT,
        activation="X",
    )


def packed(rows, columns, bits, block):
    """Random weights as bytes: [rows, blocks, bytes of a block]."""
    blocks = -(-columns // block)
    return RANDOM.integers(0, 256, (rows, blocks, block * bits // 8), np.uint8)


@pytest.mark.parametrize(
    ("bits", "columns", "block"), [(4, 32, 16), (4, 40, 16), (8, 32, 16), (8, 40, 32), (4, 64, 32)]
)
def test_matmul_nbits(bits, columns, block):
    rows, blocks = 5, -(-columns // block)
    x, weights, scale = f32(3, 2, columns), packed(rows, columns, bits, block), np.abs(f32(rows, blocks))
    options = {"bits": bits, "block_size": block, "N": rows, "K": columns, "relative": 1e-4}
    same("MatMulNBits", [x, weights, scale], fixed=(1, 2), **options)
    same("MatMulNBits", [x, weights, scale.reshape(-1)], fixed=(1, 2), **options)
    zero = RANDOM.integers(0, 256, (rows, -(-blocks * bits // 8)), np.uint8)
    same("MatMulNBits", [x, weights, scale, zero], fixed=(1, 2, 3), **options)
    same("MatMulNBits", [x, weights, scale, zero, None, f32(rows)], fixed=(1, 2, 3, 5), **options)


def test_matmul_nbits_with_real_zero_points_and_groups():
    rows, columns, block = 5, 48, 16
    x, weights, scale, zero = f32(3, columns), packed(rows, columns, 4, block), np.abs(f32(rows, 3)), f32(rows, 3)
    options = {"bits": 4, "block_size": block, "N": rows, "K": columns}
    groups = RANDOM.permutation(np.arange(columns) // block).astype(np.int32)
    quants = np.stack([weights & 15, weights >> 4], axis=-1).reshape(rows, columns)
    found = outputs_of("MatMulNBits", [x, weights, scale, zero], MICROSOFT, batch="N", fixed=(1, 2, 3), **options)[0]
    matrix = (quants - np.repeat(zero, block, 1)) * np.repeat(scale, block, 1)
    np.testing.assert_allclose(found, x @ matrix.T, rtol=1e-4, atol=1e-3)
    inputs = [x, weights, scale, None, groups]
    found = outputs_of("MatMulNBits", inputs, MICROSOFT, batch="N", fixed=(1, 2, 4), **options)[0]
    np.testing.assert_allclose(found, x @ ((quants - 8.0) * scale[:, groups]).T, rtol=1e-4, atol=1e-3)
    same("MatMulNBits", inputs, fixed=(1, 2, 4), relative=1e-4, **options)


def test_matmul_nbits_refuses():
    x, weights, scale = f32(3, 32), packed(5, 32, 4, 16), f32(5, 2)
    options = {"bits": 4, "block_size": 16, "N": 5, "K": 32, "fixed": (1, 2)}
    inputs = [x, weights, scale]
    refused(Unsupported, "with 3 bits, known are 2, 4, 8", "MatMulNBits", inputs, MICROSOFT, **{**options, "bits": 3})
    refused(
        CorruptModel, "with N=5, K=32 and blocks of 0", "MatMulNBits", inputs, MICROSOFT, **{**options, "block_size": 0}
    )
    refused(
        CorruptModel, "80 elements of uint8 do not hold 6 rows", "MatMulNBits", inputs, MICROSOFT, **{**options, "N": 6}
    )
    refused(
        Unsupported,
        "the weights of MatMulNBits must be known",
        "MatMulNBits",
        inputs,
        MICROSOFT,
        **{**options, "fixed": (2,)},
    )
    few = [*inputs, None, np.zeros(7, np.int32)]
    refused(
        CorruptModel, "'g_idx' has 7 entries for 32", "MatMulNBits", few, MICROSOFT, **{**options, "fixed": (1, 2, 4)}
    )


def cache(positions, half):
    angles = np.arange(positions)[:, None] * 10.0 ** -np.arange(half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved):
    cos, sin = cache(10, 4)
    start, each = np.array([2]), np.array([[1, 2, 3], [7, 8, 9]])
    for positions in (start, each):
        same("RotaryEmbedding", [f32(2, 3, 16), positions, cos, sin], interleaved=interleaved)
        same("RotaryEmbedding", [f32(2, 2, 3, 8), positions, cos, sin], interleaved=interleaved)
        partly = {"num_heads": 2, "rotary_embedding_dim": 8, "interleaved": interleaved}
        same("RotaryEmbedding", [f32(2, 3, 24), positions, cos, sin], **partly)


def test_rotary_embedding_refuses():
    cos, sin = cache(10, 4)
    inputs = [f32(2, 3, 12), np.array([0]), cos, sin]
    refused(CorruptModel, "wants an attribute 'num_heads'", "RotaryEmbedding", inputs, MICROSOFT)
    refused(FactError, "do not fit heads", "RotaryEmbedding", inputs, MICROSOFT, num_heads=2)
    refused(Unsupported, "packed batch", "RotaryEmbedding", inputs, MICROSOFT, is_packed_batching=1)


Q, K, V = f32(2, 3, 8), f32(2, 4, 8), f32(2, 4, 8)
MASK = np.array([[[1, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]], [[1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0]]], np.int32)


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ([Q, K, V], {}),
        ([Q, K, V], {"scale": 0.3}),
        ([Q, K, f32(2, 4, 12)], {}),
        ([Q, K, V, f32(24)], {}),
        ([Q, K, V, None, np.array([2, 4], np.int32)], {}),
        ([Q, K, V, None, MASK[:, 0]], {}),
        ([Q, K, V, None, MASK], {"mask_filter_value": -50.0}),
        ([Q, K, V, None, np.zeros((2, 4), np.int32)], {"mask_filter_value": -50.0}),
        ([Q, K, V, None, None, f32(2, 2, 3, 4)], {}),
        ([Q, K, V, None, None, f32(1, 1, 3, 4)], {}),
        ([Q, Q + 1, Q - 1], {"unidirectional": 1}),
        ([Q, Q + 1, Q - 1, None, None, None, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], {"outputs": 3}),
        ([Q, Q + 1, Q - 1, None, None, None, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], {"outputs": 3, "unidirectional": 1}),
        ([Q, f32(2, 2, 4, 4), f32(2, 2, 4, 4), f32(24)], {}),
    ],
)
def test_multi_head_attention(inputs, options):
    same("MultiHeadAttention", inputs, num_heads=2, **options)


def test_packed_queries_keys_and_values():
    """ONNX Runtime has these layouts on GPUs only: the same numbers apart give the same result."""
    together = f32(2, 3, 2, 3, 4)
    apart = [together[:, :, :, i].reshape(2, 3, 8) for i in range(3)]
    wanted = outputs_of("MultiHeadAttention", apart, MICROSOFT, num_heads=2)[0]
    found = outputs_of("MultiHeadAttention", [together], MICROSOFT, batch="N", num_heads=2)[0]
    np.testing.assert_array_equal(found, wanted)
    pair = [apart[0], np.ascontiguousarray(together[:, :, :, 1:])]
    found = outputs_of("MultiHeadAttention", pair, MICROSOFT, batch="N", num_heads=2)[0]
    np.testing.assert_array_equal(found, wanted)


def test_multi_head_attention_refuses():
    refused(
        FactError, "8 elements are not a multiple of 3 heads", "MultiHeadAttention", [Q, K, V], MICROSOFT, num_heads=3
    )
    refused(
        CorruptModel,
        "attribute 'num_heads' of MultiHeadAttention is 0",
        "MultiHeadAttention",
        [Q, K, V],
        MICROSOFT,
        num_heads=0,
    )
    lengths = [Q, K, V, None, np.zeros(8, np.int32)]
    refused(Unsupported, "describes packed rows", "MultiHeadAttention", lengths, MICROSOFT, num_heads=2)


def gqa(length, past, valid, *, packed=False, rotary=0, extra=(), kv_heads=2, heads=4, size=16):
    """Inputs of GroupQueryAttention: ``valid`` keys in each row of the cache."""
    batch = len(valid)
    q, k, v = (f32(batch, length, count * size) for count in (heads, kv_heads, kv_heads))
    inputs = [np.concatenate([q, k, v], axis=2), None, None] if packed else [q, k, v]
    cos, sin = cache(40, size // 2)
    lengths = np.array(valid, np.int32) + length - 1
    inputs += [f32(batch, kv_heads, past, size), f32(batch, kv_heads, past, size)]
    inputs += [lengths, np.array(lengths.max() + 1, np.int32)]
    inputs += [cos, sin] if rotary else [None, None]
    return [*inputs, *extra]


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        (gqa(1, 6, [6, 6]), {}),
        (gqa(1, 6, [6, 6], packed=True), {}),
        (gqa(1, 6, [3, 6]), {}),
        (gqa(3, 5, [5]), {}),
        (gqa(3, 8, [5]), {}),
        (gqa(1, 6, [4, 6]), {"softcap": 2.0}),
        (gqa(1, 6, [4, 6]), {"scale": 0.2}),
        (gqa(1, 6, [4, 6]), {"local_window_size": 3}),
        (gqa(1, 6, [4, 6]), {"smooth_softmax": 1}),
        (gqa(1, 6, [4, 6], extra=[None, None, f32(4)]), {}),
        (gqa(1, 6, [4, 6], rotary=1), {"do_rotary": 1}),
        (gqa(1, 6, [4, 6], rotary=1, packed=True), {"do_rotary": 1, "rotary_interleaved": 1}),
        (gqa(1, 6, [6, 6], extra=[None, f32(1, 4, 1, 7)]), {}),
    ],
)
def test_group_query_attention(inputs, options):
    options = {"num_heads": 4, "kv_num_heads": 2, "outputs": 3, **options}
    given = feeds(inputs)
    wanted = expected(node_model("GroupQueryAttention", inputs, MICROSOFT, **options), given)
    for batch in (None, "N"):
        for fixed in ((), (6,)):
            found = outputs_of("GroupQueryAttention", inputs, MICROSOFT, batch=batch, fixed=fixed, **options)
            np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-5)
            for ours, theirs in zip(found[1:], wanted[1:], strict=True):
                assert ours.shape == theirs.shape
                for row, last in enumerate(inputs[5]):
                    np.testing.assert_allclose(ours[row, :, : last + 1], theirs[row, :, : last + 1], atol=1e-6)


@pytest.mark.parametrize("valid", [[4, 4], [2, 4]])
def test_the_first_turn(valid):
    """A prompt; rows that are shorter are filled up at the end, and what comes of that is nobody's business."""
    q, k, v = f32(2, 4, 64), f32(2, 4, 32), f32(2, 4, 32)
    empty = np.zeros((2, 2, 0, 16), np.float32)
    lengths = np.array(valid, np.int32) - 1
    inputs = [q, k, v, empty, empty, lengths, np.array(4, np.int32), *cache(40, 8)]
    options = {"num_heads": 4, "kv_num_heads": 2, "outputs": 3, "do_rotary": 1}
    for given in (inputs, [*inputs[:3], None, None, *inputs[5:]]):
        wanted = expected(node_model("GroupQueryAttention", given, MICROSOFT, **options), feeds(given))
        found = outputs_of("GroupQueryAttention", given, MICROSOFT, batch="N", **options)
        for row, count in enumerate(valid):
            np.testing.assert_allclose(found[0][row, :count], wanted[0][row, :count], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found[1][row, :, :count], wanted[1][row, :, :count], atol=1e-6)


def test_group_query_attention_refuses():
    inputs = gqa(1, 6, [6, 6])
    refused(
        CorruptModel,
        "4 heads of queries cannot share 3",
        "GroupQueryAttention",
        inputs,
        MICROSOFT,
        num_heads=4,
        kv_num_heads=3,
    )
    refused(
        CorruptModel,
        "attribute 'kv_num_heads' of GroupQueryAttention is -1",
        "GroupQueryAttention",
        inputs,
        MICROSOFT,
        num_heads=4,
        kv_num_heads=-1,
    )


def number(value):
    return np.array(value, np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantised_operators(dtype):
    low, high = (0, 255) if dtype is np.uint8 else (-128, 127)

    def bytes_of(*shape):
        return RANDOM.integers(low, high, shape, endpoint=True).astype(dtype)

    def zero(value):
        return np.array(value, dtype)

    a, b = bytes_of(2, 3, 4), bytes_of(3, 1)
    first, second = [a, number(0.02), zero(5)], [b, number(0.03), zero(9)]
    for op_type in ("QLinearAdd", "QLinearMul"):
        close(op_type, [*first, *second, number(0.05), zero(3)])
    close("QLinearLeakyRelu", [*first, number(0.04), zero(3)], alpha=0.1)
    close("QLinearSigmoid", [*first, number(0.004), zero(3)])
    close("QLinearConcat", [number(0.05), zero(3), *first, bytes_of(2, 5, 4), number(0.03), zero(9)], axis=1)
    image = [bytes_of(1, 3, 4, 4), number(0.02), zero(5)]
    close("QLinearGlobalAveragePool", [*image, number(0.013), zero(3)])
    close("QLinearGlobalAveragePool", [*image, number(0.013), zero(3)], channels_last=1)
    close("QLinearAveragePool", [*image, number(0.013), zero(3)], kernel_shape=[2, 2], strides=[2, 2])
    close("DequantizeLinear", first)
    close("QuantizeLinear", [f32(2, 3), number(0.02), zero(5)])


def close(op_type, inputs, **options):
    """Within one step: ONNX Runtime computes some of them with tables, or in another order."""
    wanted = expected(node_model(op_type, inputs, MICROSOFT, **options), feeds(inputs))[0]
    for batch in (None, "N"):
        found = outputs_of(op_type, inputs, MICROSOFT, batch=batch, **options)[0]
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        step = 1 if wanted.dtype.kind in "iu" else 1e-6
        assert np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max() <= step
        assert (np.abs(found.astype(np.float64) - wanted.astype(np.float64)) > 0).mean() < 0.1


def test_quantised_concat_refuses():
    inputs = [number(0.05), np.uint8(3), np.zeros(2, np.uint8), number(1)]
    refused(CorruptModel, "QLinearConcat has 4 inputs", "QLinearConcat", inputs, MICROSOFT, axis=0)
