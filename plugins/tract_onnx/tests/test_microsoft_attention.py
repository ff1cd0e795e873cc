"""Attention with its own weights, and the recurrent forms of it, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_single import MICROSOFT, refused, same_as_onnxruntime

from tract_core.errors import CorruptModel, FactError, Unsupported

HEADS, SIZE = 2, 4
WIDTH = HEADS * SIZE


def f32(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def same(op_type, inputs, **options):
    same_as_onnxruntime(op_type, inputs, MICROSOFT, relative=2e-5, **options)


X, WEIGHTS, BIAS = f32(2, 3, 5), f32(5, 3 * WIDTH), f32(3 * WIDTH)
PAST = f32(2, 2, HEADS, 4, SIZE)


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ([X, WEIGHTS, BIAS], {}),
        ([X, WEIGHTS, BIAS], {"scale": 0.3, "unidirectional": 1}),
        ([X[:, :1], WEIGHTS, BIAS], {"unidirectional": 1}),
        (
            [X, f32(5, 2 * WIDTH + 2 * HEADS), f32(2 * WIDTH + 2 * HEADS)],
            {"qkv_hidden_sizes": [WIDTH, WIDTH, 2 * HEADS]},
        ),
        ([X, WEIGHTS, BIAS, np.array([[1, 1, 0], [0, 1, 1]], np.int32)], {"mask_filter_value": -50.0}),
        ([X, WEIGHTS, BIAS, np.array([2, 3], np.int32)], {}),
        ([X, WEIGHTS, BIAS, None, None, f32(1, HEADS, 3, 3)], {}),
        ([X, WEIGHTS, BIAS, None, PAST], {"unidirectional": 1, "outputs": 2}),
    ],
)
def test_attention(inputs, options):
    batch = {"symbolic": False} if len(inputs) == 5 else {}  # the past has its batch on another axis
    same("Attention", inputs, num_heads=HEADS, fixed=(1, 2), **batch, **options)


def test_attention_refuses():
    for error, match, inputs, options in (
        (FactError, "wants a tensor of three axes and a matrix", [X[0], WEIGHTS, BIAS], {}),
        (CorruptModel, r"sizes \[8, 8, 9\] are not in weights", [X, WEIGHTS, BIAS], {"qkv_hidden_sizes": [8, 8, 9]}),
        (CorruptModel, r"sizes \[\] are not in weights", [X, f32(5, 25), None], {}),
        (Unsupported, "with rotary positions", [X, WEIGHTS, BIAS], {"do_rotary": 1}),
    ):
        refused(error, match, "Attention", inputs, MICROSOFT, num_heads=HEADS, **options)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_linear_attention(rule, length):
    q, k, v = (f32(2, length, WIDTH, seed=seed) * 0.5 for seed in range(3))
    decay = -np.abs(f32(2, length, HEADS, seed=3)) if "gated" in rule else None
    beta = 1 / (1 + np.exp(f32(2, length, HEADS, seed=4))) if "delta" in rule else None
    inputs = [q, k, v, f32(2, HEADS, SIZE, SIZE, seed=5), decay, beta]
    while inputs[-1] is None:
        inputs.pop()
    same("LinearAttention", inputs, outputs=2, update_rule=rule, q_num_heads=HEADS, kv_num_heads=HEADS, symbolic=False)


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_convolution(activation, length):
    inputs = [f32(2, 3, length), f32(3, 1, 4), f32(3), f32(2, 3, 3, seed=1)]
    same("CausalConvWithState", inputs, outputs=2, activation=activation, symbolic=False)
    same("CausalConvWithState", inputs[:2], outputs=2, activation=activation, symbolic=False)


def test_what_the_standard_does_not_have_is_refused():
    inputs = [f32(2, 3, 5), f32(3, 1, 4)]
    refused(Unsupported, "with dilation=2", "CausalConvWithState", inputs, MICROSOFT, dilation=2, outputs=2)
