"""Networks for signals and for control: 1-D convolutions, recurrent layers, a small policy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from networks.builder import Builder, Network


def keyword_spotter(frames: int = 200, width: int = 24, layers: int = 8, mels: int = 40) -> Network:
    """Causal convolutions with growing dilation and gates (van den Oord et al. 2016; Coucke et al. 2018)."""
    b = Builder(21)
    x = b.conv(b.input("mels", b.normal(1, mels, frames)), (mels, width), (1,))
    skips = None
    for layer in range(layers):
        dilation = 2 ** (layer % 4)
        both = b.conv(x, (width, 2 * width), (3,), dilations=[dilation], pads=[2 * dilation, 0])
        signal, gate = b.add("Split", both, b.ints(width, width), outputs=2, axis=1)
        y = b.add("Mul", b.add("Tanh", signal), b.add("Sigmoid", gate))
        skip = b.conv(y, (width, width), (1,))
        skips = skip if skips is None else b.add("Add", skips, skip)
        x = b.add("Add", x, b.conv(y, (width, width), (1,)))
    y = b.add("Relu", b.conv(b.add("Relu", skips), (width, 2 * width), (1,)))
    return b.finish(b.add("Softmax", b.conv(y, (2 * width, 12), (1,)), axis=1))


def causal_depthwise(frames: int = 400, width: int = 128, layers: int = 8, mels: int = 40) -> Network:
    """Depthwise convolutions over the past, each followed by a pointwise one, with shortcuts."""
    b = Builder(22)
    x = b.conv(b.input("mels", b.normal(1, mels, frames)), (mels, width), (1,))
    for layer in range(layers):
        dilation = 2 ** (layer % 4)
        y = b.conv(x, (width, width), (5,), group=width, dilations=[dilation], pads=[4 * dilation, 0])
        y = b.add("Relu", b.conv(b.add("Relu", y), (width, width), (1,)))
        x = b.add("Add", x, y)
    return b.finish(b.conv(x, (width, 32), (1,)))


def dilated_residual(frames: int = 400, width: int = 64, layers: int = 8, mels: int = 20) -> Network:
    """Residual blocks of causal convolutions, each of which looks back twice as far as the one before."""
    b = Builder(26)
    x = b.conv(b.input("mels", b.normal(1, mels, frames)), (mels, width), (1,))
    for layer in range(layers):
        dilation = 2**layer
        y = b.add("Relu", b.conv(x, (width, width), (3,), dilations=[dilation], pads=[2 * dilation, 0]))
        x = b.add("Relu", b.add("Add", x, b.conv(y, (width, width), (1,))))
    return b.finish(b.conv(x, (width, 12), (1,)))


def _recurrent(b: Builder, kind: str, x: str, sizes: tuple[int, int], **attributes: Any) -> list[str]:
    """An LSTM or a GRU over time, the first axis. ``sizes``: of a step's input and of the state."""
    inputs, hidden = sizes
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    gates = {"LSTM": 4, "GRU": 3}[kind] * hidden
    weights = b.weight(directions, gates, inputs, summed=inputs), b.weight(directions, gates, hidden, summed=hidden)
    bias = b.constant(b.normal(directions, 2 * gates) * np.float32(0.1))
    outputs = 3 if kind == "LSTM" else 2
    return b.add(kind, x, *weights, bias, outputs=outputs, hidden_size=hidden, **attributes)


def lstm(steps: int = 100, features: int = 40, hidden: int = 128, layers: int = 2) -> Network:
    return _layers(Builder(23), "LSTM", (steps, features), hidden, layers)


def gru(steps: int = 100, features: int = 40, hidden: int = 128, layers: int = 2) -> Network:
    return _layers(Builder(27), "GRU", (steps, features), hidden, layers)


def _layers(b: Builder, kind: str, sizes: tuple[int, int], hidden: int, layers: int) -> Network:
    """Recurrent layers, one on the other. ``sizes``: of the input, steps and features."""
    steps, inputs = sizes
    x = b.input("x", b.normal(steps, 1, inputs))
    for _ in range(layers):
        x = b.add("Squeeze", _recurrent(b, kind, x, (inputs, hidden))[0], b.ints(1))
        inputs = hidden
    return b.finish(b.dense(x, hidden, 10))


def bidirectional_gru(steps: int = 100, features: int = 40, hidden: int = 128) -> Network:
    b = Builder(24)
    x = b.input("x", b.normal(steps, 1, features))
    sizes = (features, hidden)
    x = _recurrent(b, "GRU", x, sizes, direction="bidirectional", linear_before_reset=1)[0]
    x = b.add("Reshape", b.add("Transpose", x, perm=[0, 2, 1, 3]), b.ints(0, 0, -1))
    return b.finish(b.dense(x, 2 * hidden, 10))


def policy(rows: int = 1, sizes: tuple[int, ...] = (64, 256, 256, 8)) -> Network:
    """Fully connected layers with tanh in between."""
    b = Builder(25)
    x = b.input("x", b.normal(rows, sizes[0]))
    for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
        x = b.gemm(x, inputs, outputs)
        x = x if layer == len(sizes) - 2 else b.add("Tanh", x)
    return b.finish(x)
