"""Operators of ``com.microsoft`` that stand for several: on f16 they round once, as if computed exactly before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx_single import MICROSOFT, outputs_of

RANDOM = np.random.default_rng(11)
ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)


def f16(*shape, scale=1.0):
    return (RANDOM.standard_normal(shape) * scale).astype(np.float16)


def wide(*arrays):
    return [array.astype(np.float64) for array in arrays]


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def fast_gelu(x):
    return x / 2 * (1 + np.tanh(ROOT_TWO_OVER_PI * (x + 0.044715 * x**3)))


def standardised(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def root_mean_squared(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def attention(q, k, v):
    """Two heads."""
    q, k, v = (x.reshape(2, 5, 2, 8).transpose(0, 2, 1, 3) for x in (q, k, v))
    weights = np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(8))
    return (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 16)


def turned(x, places, cos, sin):
    first, second = np.split(x.reshape(2, 5, 2, 8), 2, axis=-1)
    cos, sin = cos[places.astype(int)][:, :, None], sin[places.astype(int)][:, :, None]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).reshape(2, 5, 16)


def unpacked(packed):
    """4-bit integers, the lower half of a byte first."""
    packed = packed.astype(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1).astype(float)


def from_blocks(packed, scale, zero):
    return ((unpacked(packed) - unpacked(zero)[:, :2, None]) * scale[..., None]).reshape(len(packed), -1)


X, SKIP, BIAS, SCALE = f16(4, 40, 16, scale=3), f16(4, 40, 16, scale=3), f16(16), f16(16)
A, B, C = f16(5, 33), f16(33, 7), f16(7)
Q, K, V, QKV = f16(2, 5, 16), f16(2, 5, 16), f16(2, 5, 16), f16(48)
COS, SIN, PLACES = f16(9, 4), f16(9, 4), np.tile(np.arange(5), (2, 1))
IMAGE, KERNEL, OTHER = f16(1, 3, 6, 6), f16(4, 3, 1, 1), f16(1, 4, 6, 6)
PACKED = RANDOM.integers(0, 256, (16, 2, 16)).astype(np.uint8), RANDOM.integers(0, 256, (16, 1)).astype(np.uint8)
BLOCKS, ROWS = RANDOM.uniform(0.01, 0.1, (16, 2)).astype(np.float16), f16(3, 64)

CASES = {
    "BiasGelu": ([X, BIAS], {}, [lambda x, b: gelu(x + b)]),
    "FastGelu": ([X, BIAS], {}, [lambda x, b: fast_gelu(x + b)]),
    "QuickGelu": ([X], {}, [lambda x: x / (1 + np.exp(-1.702 * x))]),
    "SkipLayerNormalization": (
        [X, SKIP, SCALE, BIAS, BIAS],
        {"epsilon": 1e-5},
        [lambda x, y, s, b, c: standardised(x + y + c) * s + b, None, None, lambda x, y, *more: x + y + more[2]],
    ),
    "SkipSimplifiedLayerNormalization": (
        [X, SKIP, SCALE, BIAS],
        {"epsilon": 1e-5},
        [lambda x, y, s, b: root_mean_squared(x + y + b) * s],
    ),
    "FusedMatMul": ([A, B], {"alpha": 0.37}, [lambda a, b: np.float64(np.float32(0.37)) * (a @ b)]),
    "FusedGemm": (
        [A, B, C],
        {"alpha": 0.5, "beta": 2.5, "activation": "Tanh"},
        [lambda a, b, c: np.tanh(0.5 * (a @ b) + 2.5 * c)],
    ),
    "FusedConv": (
        [IMAGE, KERNEL, C[:4], OTHER],
        {"activation": "Tanh"},
        [lambda x, w, b, z: np.tanh(np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]) + b[:, None, None] + z)],
    ),
    "RotaryEmbedding": ([Q, PLACES, COS, SIN], {}, [turned]),
    "MultiHeadAttention": (
        [Q, K, V, QKV],
        {"num_heads": 2},
        [lambda q, k, v, b: attention(q + b[:16], k + b[16:32], v + b[32:])],
    ),
    "MatMulNBits": (
        [ROWS, PACKED[0], BLOCKS, PACKED[1]],
        {"K": 64, "N": 16, "bits": 4, "block_size": 32, "fixed": (1, 2, 3)},
        [lambda x, q, s, z: x @ from_blocks(q, s, z).T],
    ),
}


@pytest.mark.parametrize("op_type", CASES)
@pytest.mark.parametrize("declutter", [False, True])
def test_rounded_once(op_type, declutter):
    """At most half a unit in the last place, and what f32 adds to that: more where terms cancel."""
    inputs, options, expected = CASES[op_type]
    found = outputs_of(op_type, inputs, MICROSOFT, outputs=len(expected), declutter=declutter, **options)
    for one, function in zip(found, expected, strict=True):
        if function is None:
            assert one.dtype == np.float32
            continue
        wanted = function(*wide(*inputs))
        assert one.dtype == np.float16
        unit = np.spacing(np.abs(wanted).astype(np.float16)).astype(np.float64)
        rounding_of_f32 = 2e-6 * np.abs(wanted).max()
        assert (np.abs(one - wanted) <= 0.5 * unit + rounding_of_f32).all()
