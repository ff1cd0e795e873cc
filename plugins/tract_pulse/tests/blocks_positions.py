"""Blocks that compute each position from itself, or one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from architectures import Architecture, Signal
from blocks_branches import joined
from blocks_ends import cut
from blocks_windows import convolved
from onnx import numpy_helper


def activation(net: Architecture, x: Signal) -> Signal:
    kind = net.random.choice(["Relu", "Elu", "Tanh", "LeakyRelu", "Softplus", "PRelu", "Snake", "Gelu", "Clip"])
    if kind == "PRelu":
        name = net.node("PRelu", x.name, net.weights(x.channels, 1))
    elif kind == "Snake":
        slope = net.const(np.abs(net.numbers.normal(size=(1, x.channels, 1))) + 0.5)
        wave = net.node("Sin", net.node("Mul", x.name, slope))
        name = net.node("Add", x.name, net.node("Div", net.node("Mul", wave, wave), slope))
    elif kind == "Gelu":
        inner = net.node("Erf", net.node("Mul", x.name, net.const(0.7071)))
        name = net.node("Mul", net.node("Mul", x.name, net.const(0.5)), net.node("Add", inner, net.const(1)))
    elif kind == "Clip":
        name = net.node("Clip", x.name, net.const(-1), net.const(1))
    else:
        name = net.node(kind, x.name)
    return net.told(x, name)


def normalised(net: Architecture, x: Signal) -> Signal:
    """Over the channels of each position, or by numbers that are part of the network."""
    way = net.between(0, 3)
    if way == 0:
        parts = [net.weights(x.channels), net.weights(x.channels), net.weights(x.channels)]
        variance = net.const(np.abs(net.numbers.normal(size=x.channels)) + 0.5)
        return net.told(x, net.node("BatchNormalization", x.name, *parts, variance))
    if way == 1:
        last = net.node("Transpose", x.name, perm=[0, 2, 1])
        found = net.node("LayerNormalization", last, net.weights(x.channels), net.weights(x.channels), axis=-1)
        return net.told(x, net.node("Transpose", found, perm=[0, 2, 1]))
    if way == 2:
        mean = net.node("ReduceMean", x.name, net.ints(1), keepdims=1)
        return net.told(x, net.node("Sub", x.name, mean))
    return net.told(x, net.node("Softmax", x.name, axis=1))


def so_far(net: Architecture, x: Signal) -> Signal:
    """Less the mean of all that came so far, over channels and positions (cumulative layer norm)."""
    total = net.node("ReduceSum", x.name, net.ints(1), keepdims=1)
    sums = net.node("CumSum", total, net.const(2, np.int64))
    ones = net.node("ConstantOfShape", net.node("Concat", net.ints(1, 1), net.length_of(x), axis=0), value=_one())
    counts = net.node("CumSum", ones, net.const(2, np.int64))
    mean = net.node("Div", sums, net.node("Mul", counts, net.const(x.channels)))
    return net.told(x, net.node("Sub", x.name, mean))


def _one() -> Any:
    return numpy_helper.from_array(np.ones(1, np.float32))


def recurrent(net: Architecture, x: Signal) -> Signal:
    kind, gates = net.random.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    hidden = net.between(1, 4)
    steps = net.node("Transpose", x.name, perm=[2, 0, 1])
    inputs = [steps, net.weights(1, gates * hidden, x.channels), net.weights(1, gates * hidden, hidden)]
    if net.chance(0.7):
        inputs.append(net.weights(1, 2 * gates * hidden))
    options: dict[str, Any] = {"hidden_size": hidden}
    if kind == "GRU":
        options["linear_before_reset"] = net.between(0, 1)
    found = net.node(kind, *inputs, **options)
    flat = net.node("Squeeze", found, net.ints(1))
    wide = net.told(x, net.node("Transpose", flat, perm=[1, 2, 0]), channels=hidden)
    wide = net.resized(wide, wide.name, np.where(wide.lengths >= 1, wide.lengths, -1))
    return convolved(net, wide, 1, channels=x.channels)


def running(net: Architecture, x: Signal) -> Signal:
    small = net.node("Mul", x.name, net.const(0.1))
    return net.told(x, net.node("CumSum", small, net.const(2, np.int64), exclusive=net.between(0, 1)))


def dense(net: Architecture, x: Signal) -> Signal:
    last = net.node("Transpose", x.name, perm=[0, 2, 1])
    found = net.node("MatMul", last, net.weights(x.channels, x.channels))
    return net.told(x, net.node("Transpose", net.node("Add", found, net.weights(x.channels)), perm=[0, 2, 1]))


def deltas(net: Architecture, x: Signal) -> Signal:
    """How much each position differs from the one before."""
    later, earlier = cut(net, x, 1, 0), cut(net, x, 0, 1)
    return joined(net, "Sub", later, earlier)


def conditioned(net: Architecture, x: Signal) -> Signal:
    """Scaled and moved by an input that is whole, as the vector of a speaker."""
    name = net.whole(net.name("speaker"), 1, x.channels, 1)
    return net.told(x, net.node("Add", net.node("Mul", x.name, name), name))


def told(net: Architecture, x: Signal) -> Signal:
    """An output more."""
    net.outputs.append(net.told(x, net.node("Tanh", x.name)))
    return x
