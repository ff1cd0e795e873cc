"""Blocks with a window that slides along the signal, and the every n-th position."""

from __future__ import annotations

from typing import Any

import numpy as np
from architectures import END, Architecture, Signal
from blocks_ends import cut, padded


def window(lengths: Any, kernel: int, dilation: int, stride: int, pads: tuple[int, int]) -> Any:
    """How many places a window has; -1 where it does not fit even once."""
    room = lengths + sum(pads) - (kernel - 1) * dilation - 1
    return np.where((lengths >= 0) & (room >= 0), room // stride + 1, -1)


def convolved(
    net: Architecture,
    x: Signal,
    kernel: int,
    *,
    dilation: int = 1,
    stride: int = 1,
    pads: tuple[int, int] = (0, 0),
    channels: int | None = None,
    groups: int = 1,
    same: str | None = None,
) -> Signal:
    """``same``: the name of an automatic padding in the place of ``pads``."""
    out = x.channels if channels is None else channels
    inputs = [x.name, net.weights(out, x.channels // groups, kernel)]
    if net.chance(0.7):
        inputs.append(net.weights(out))
    options: dict[str, Any] = {"strides": [stride], "dilations": [dilation], "group": groups}
    if same is None:
        options["pads"] = list(pads)
        lengths = window(x.lengths, kernel, dilation, stride, pads)
    else:
        options["auto_pad"] = same
        lengths = -(-x.lengths // stride)
    return net.resized(x, net.node("Conv", *inputs, **options), lengths, channels=out, rate=x.rate / stride)


def convolution(net: Architecture, x: Signal) -> Signal:
    kernel, dilation = net.between(1, 5), net.random.choice([1, 1, 2, 3, 4])
    stride = net.random.choice([1, 1, 1, 2, 2, 3])
    field = (kernel - 1) * dilation
    way = net.random.choice(["valid", "symmetric", "causal", "ahead", "any", "same"])
    pads = {
        "valid": (0, 0),
        "symmetric": (field // 2, field // 2),
        "causal": (field, 0),
        "ahead": (0, field),
        "any": (net.between(0, 6), net.between(0, 6)),
        "same": (0, 0),
    }[way]
    groups = x.channels if net.chance(0.2) else 1
    same = net.random.choice(["SAME_UPPER", "SAME_LOWER"]) if way == "same" and stride == 1 else None
    return convolved(net, x, kernel, dilation=dilation, stride=stride, pads=pads, groups=groups, same=same)


def causal_convolution(net: Architecture, x: Signal) -> Signal:
    """Padded in front by a node of its own, or on both sides, and cut at the end (Chomp1d)."""
    kernel, dilation = net.between(2, 5), net.random.choice([1, 2, 4, 8])
    field = (kernel - 1) * dilation
    if net.chance(0.5):
        return convolved(net, padded(net, x, field, 0), kernel, dilation=dilation)
    found = convolved(net, x, kernel, dilation=dilation, pads=(field, field))
    return cut(net, found, 0, field)


def frames(net: Architecture, x: Signal) -> Signal:
    """A learned front end: a long window, and a stride of half of it."""
    stride = net.random.choice([2, 4])
    return convolved(net, x, 2 * stride, stride=stride)


def in_two_dimensions(net: Architecture, x: Signal) -> Signal:
    """The channels as frequencies, and a convolution over both."""
    high = x.channels
    laid = net.node("Unsqueeze", x.name, net.ints(1))
    kernel, dilation = net.between(1, 3), net.between(1, 2)
    field = (kernel - 1) * dilation
    pads = net.random.choice([(field, 0), (0, 0), (field // 2, field // 2)])
    middle = net.between(1, 3)
    one = net.node(
        "Conv",
        laid,
        net.weights(middle, 1, 3, kernel),
        pads=[1, pads[0], 1, pads[1]],
        dilations=[1, dilation],
    )
    other = net.node("Conv", net.node("Relu", one), net.weights(1, middle, 1, 1))
    lengths = window(x.lengths, kernel, dilation, 1, pads)
    return net.resized(x, net.node("Squeeze", other, net.ints(1)), lengths, channels=high)


def flattened(net: Architecture, x: Signal) -> Signal:
    """Two-dimensional maps, laid one above the other as channels."""
    maps = 2
    found = net.node("Conv", net.node("Unsqueeze", x.name, net.ints(1)), net.weights(maps, 1, 3, 2), pads=[1, 1, 1, 0])
    shape = net.node("Concat", net.ints(1, maps * x.channels), net.length_of(x), axis=0)
    flat = net.node("Reshape", found, shape if net.chance(0.5) else net.ints(1, maps * x.channels, -1))
    wide = net.told(x, flat, channels=maps * x.channels)
    return convolved(net, wide, 1, channels=x.channels)


def pool(net: Architecture, x: Signal) -> Signal:
    kernel = net.between(1, 4)
    stride = net.random.choice([1, 1, 2, 2, 3, kernel])
    most = kernel - 1
    pads = net.random.choice([(0, 0), (most // 2, most // 2), (most, 0), (0, most)])
    options: dict[str, Any] = {"kernel_shape": [kernel], "strides": [stride], "pads": list(pads)}
    op = net.random.choice(["MaxPool", "AveragePool"])
    lengths = window(x.lengths, kernel, 1, stride, pads)
    if op == "AveragePool":
        options["count_include_pad"] = net.between(0, 1)
    if net.chance(0.2) and pads[1] == 0 and not options.get("count_include_pad"):
        options["ceil_mode"] = 1
        room = x.lengths + sum(pads) - kernel
        lengths = np.where(room >= 0, -(-room // stride) + 1, -1)
        # A last window that would begin behind the signal is left away.
        lengths = np.where((lengths - 1) * stride >= x.lengths + pads[0], lengths - 1, lengths)
    return net.resized(x, net.node(op, x.name, **options), lengths, rate=x.rate / stride)


def thinned(net: Architecture, x: Signal) -> Signal:
    step, first = net.between(2, 3), net.between(0, 2)
    lengths = np.where(x.lengths >= 0, np.maximum(-(-(x.lengths - first) // step), 0), -1)
    return net.resized(x, net.slice(x.name, first, END, step=step), lengths, rate=x.rate / step)
