"""Transformers, spelled out in the operators that exporters write."""

from __future__ import annotations

from math import sqrt

import numpy as np
from onnx import TensorProto

from networks.builder import Builder, Network


def _norm(b: Builder, x: str, width: int) -> str:
    scale = b.constant(b.random.uniform(0.5, 1.5, width).astype(np.float32))
    return b.add("LayerNormalization", x, scale, b.bias(width), axis=-1, epsilon=1e-5)


def _gelu(b: Builder, x: str) -> str:
    half = b.add("Add", b.add("Erf", b.add("Div", x, b.float(sqrt(2)))), b.float(1))
    return b.add("Mul", b.add("Mul", x, half), b.float(0.5))


def _feed(b: Builder, x: str, width: int) -> str:
    return b.dense(_gelu(b, b.dense(x, width, 4 * width)), 4 * width, width)


def _attention(b: Builder, x: str, width: int, heads: int, mask: str | None = None) -> str:
    """Self-attention of several heads. ``mask`` is added to the scores."""
    split = b.ints(0, -1, heads, width // heads)
    q, k, v = (b.add("Reshape", b.dense(x, width, width), split) for _ in range(3))
    q, v = (b.add("Transpose", part, perm=[0, 2, 1, 3]) for part in (q, v))
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 2, 3, 1]))
    scores = b.add("Div", scores, b.float(sqrt(width // heads)))
    if mask is not None:
        scores = b.add("Add", scores, mask)
    mixed = b.add("MatMul", b.add("Softmax", scores, axis=-1), v)
    joined = b.add("Reshape", b.add("Transpose", mixed, perm=[0, 2, 1, 3]), b.ints(0, -1, width))
    return b.dense(joined, width, width)


def _mask(b: Builder, kept: np.ndarray) -> str:
    """What is added to scores: 0 where ``kept`` is 1, a large negative number where it is 0."""
    mask = b.add("Unsqueeze", b.add("Cast", b.input("mask", kept), to=TensorProto.FLOAT), b.ints(1, 2))
    return b.add("Mul", b.add("Sub", b.float(1), mask), b.float(-10000))


def bert(tokens: int = 128, depth: int = 12, width: int = 768, vocabulary: int = 30522) -> Network:
    """Devlin et al. 2018, base."""
    b = Builder(11)
    ids = b.input("ids", b.random.integers(0, vocabulary, (1, tokens)))
    segments = b.input("segments", (np.arange(tokens)[None] * 2 // tokens).astype(np.int64))
    mask = _mask(b, (np.arange(tokens)[None] < tokens - tokens // 8).astype(np.int64))
    words = b.add("Gather", b.constant(b.normal(vocabulary, width)), ids)
    words = b.add("Add", words, b.add("Gather", b.constant(b.normal(2, width)), segments))
    x = _norm(b, b.add("Add", words, b.constant(b.normal(1, tokens, width))), width)
    for _ in range(depth):
        x = _norm(b, b.add("Add", x, _attention(b, x, width, width // 64, mask)), width)
        x = _norm(b, b.add("Add", x, _feed(b, x, width)), width)
    first = b.add("Gather", x, b.constant(np.array(0)), axis=1)
    return b.finish(x, b.add("Tanh", b.gemm(first, width, width)))


def _encoder_layer(b: Builder, x: str, width: int, heads: int) -> str:
    x = b.add("Add", x, _attention(b, _norm(b, x, width), width, heads))
    return b.add("Add", x, _feed(b, _norm(b, x, width), width))


def vision_transformer(size: int = 224, depth: int = 12, width: int = 192, patch: int = 16) -> Network:
    """Dosovitskiy et al. 2020, tiny: patches, a class token, normalisation before each part."""
    b = Builder(12)
    count = (size // patch) ** 2
    image = b.input("image", b.normal(1, 3, size, size))
    x = b.conv(image, (3, width), patch, strides=[patch] * 2, pads=[0] * 4)
    x = b.add("Transpose", b.add("Reshape", x, b.ints(0, width, -1)), perm=[0, 2, 1])
    x = b.add("Concat", b.constant(b.normal(1, 1, width)), x, axis=1)
    x = b.add("Add", x, b.constant(b.normal(1, count + 1, width)))
    for _ in range(depth):
        x = _encoder_layer(b, x, width, width // 64)
    first = b.add("Gather", _norm(b, x, width), b.constant(np.array(0)), axis=1)
    return b.finish(b.gemm(first, width, 1000))


def speech_encoder(frames: int = 300, depth: int = 4, width: int = 256, mels: int = 80) -> Network:
    """1-D convolutions over log-mel frames, then transformer layers (the front of Radford et al. 2022)."""
    b = Builder(13)
    x = b.input("mels", b.normal(1, mels, frames))
    x = _gelu(b, b.conv(x, (mels, width), (3,)))
    x = _gelu(b, b.conv(x, (width, width), (3,), strides=[2]))
    x = b.add("Add", b.add("Transpose", x, perm=[0, 2, 1]), b.constant(b.normal(1, (frames + 1) // 2, width)))
    for _ in range(depth):
        x = _encoder_layer(b, x, width, width // 64)
    return b.finish(_norm(b, x, width))


def _rms_norm(b: Builder, x: str, width: int) -> str:
    mean = b.add("ReduceMean", b.add("Pow", x, b.float(2)), axes=[-1], keepdims=1)
    root = b.add("Sqrt", b.add("Add", mean, b.float(1e-5)))
    y = b.add("Mul", x, b.add("Div", b.float(1), root))
    return b.add("Mul", b.constant(b.random.uniform(0.5, 1.5, width).astype(np.float32)), y)


def _rotate(b: Builder, x: str, size: int, cos: str, sin: str) -> str:
    """Rotary embedding of positions (Su et al. 2021) on the last axis, of ``size``."""
    left = b.add("Slice", x, b.ints(0), b.ints(size // 2), b.ints(3))
    right = b.add("Slice", x, b.ints(size // 2), b.ints(size), b.ints(3))
    turned = b.add("Concat", b.add("Neg", right), left, axis=3)
    return b.add("Add", b.add("Mul", x, cos), b.add("Mul", turned, sin))


def _repeat(b: Builder, x: str, shape: tuple[int, int, int], times: int) -> str:
    """Each of the heads of keys or values ``times`` times. ``shape``: heads, length, size of a head."""
    heads, length, size = shape
    x = b.add("Expand", b.add("Unsqueeze", x, b.ints(2)), b.ints(1, heads, times, length, size))
    return b.add("Reshape", x, b.ints(1, heads * times, length, size))


def llama_step(
    *, past: int = 256, depth: int = 8, heads: int = 8, kv_heads: int = 4, vocabulary: int = 8192, size: int = 64
) -> Network:
    """Touvron et al. 2023, small: one token, with the keys and values of those before as inputs and outputs."""
    b = Builder(14)
    width = heads * size
    angles = np.arange(past + 1)[:, None] * 10000.0 ** (-np.arange(0, size, 2) / size)[None]
    tables = (b.constant(np.concatenate([table(angles)] * 2, -1).astype(np.float32)) for table in (np.cos, np.sin))
    position = b.input("position", np.array([[past]]))
    cos, sin = (b.add("Unsqueeze", b.add("Gather", table, position), b.ints(1)) for table in tables)
    mask = _mask(b, np.ones((1, past + 1), np.int64))
    x = b.add("Gather", b.constant(b.normal(vocabulary, width)), b.input("ids", np.array([[7]])))
    present: list[str] = []
    for layer in range(depth):
        y = _rms_norm(b, x, width)
        q = b.add("Reshape", b.dense(y, width, width, bias=False), b.ints(1, 1, heads, size))
        k, v = (
            b.add("Reshape", b.dense(y, width, kv_heads * size, bias=False), b.ints(1, 1, kv_heads, size))
            for _ in range(2)
        )
        q, k, v = (b.add("Transpose", part, perm=[0, 2, 1, 3]) for part in (q, k, v))
        q, k = _rotate(b, q, size, cos, sin), _rotate(b, k, size, cos, sin)
        before = [b.input(f"past_{kind}{layer}", b.normal(1, kv_heads, past, size)) for kind in "kv"]
        k, v = (b.add("Concat", old, new, axis=2) for old, new in zip(before, (k, v), strict=True))
        present += [k, v]
        shape = (kv_heads, past + 1, size)
        keys, values = (_repeat(b, part, shape, heads // kv_heads) for part in (k, v))
        scores = b.add("MatMul", q, b.add("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = b.add("Add", b.add("Mul", scores, b.float(1 / sqrt(size))), mask)
        mixed = b.add("MatMul", b.add("Softmax", scores, axis=-1), values)
        joined = b.add("Reshape", b.add("Transpose", mixed, perm=[0, 2, 1, 3]), b.ints(1, 1, width))
        x = b.add("Add", x, b.dense(joined, width, width, bias=False))
        x = b.add("Add", x, _gated_feed(b, _rms_norm(b, x, width), width))
    return b.finish(b.dense(_rms_norm(b, x, width), width, vocabulary, bias=False), *present)


def _gated_feed(b: Builder, x: str, width: int) -> str:
    inside = 11 * width // 4
    gate, up = (b.dense(x, width, inside, bias=False) for _ in range(2))
    gated = b.add("Mul", b.add("Mul", gate, b.add("Sigmoid", gate)), up)
    return b.dense(gated, inside, width, bias=False)
