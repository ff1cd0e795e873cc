"""Blocks with more or fewer positions than the signal has."""

from __future__ import annotations

from typing import Any

import numpy as np
from architectures import Architecture, Signal
from blocks_branches import gated, joined, plain, stacked
from blocks_ends import together
from blocks_windows import convolved, window


def upsampled(net: Architecture, x: Signal, factor: int | None = None) -> Signal:
    factor = factor or net.between(2, 3)
    return net.random.choice([transposed, resized, repeated, shuffled, expanded])(net, x, factor)


def transposed(net: Architecture, x: Signal, factor: int) -> Signal:
    kernel = net.random.choice([factor, 2 * factor, factor + 1, 2 * factor - 1])
    dilation = net.random.choice([1, 1, 1, 2])
    field = (kernel - 1) * dilation + 1
    more = net.between(0, factor - 1)
    over = field + more - factor
    pads = net.random.choice([(0, 0), (over // 2, over - over // 2), (0, over), (1, 1)]) if over > 1 else (0, 0)
    pads = (min(pads[0], field - 1), min(pads[1], field - 1 + more))
    options: dict[str, Any] = {
        "strides": [factor],
        "dilations": [dilation],
        "pads": list(pads),
        "output_padding": [more],
    }
    name = net.node(
        "ConvTranspose", x.name, net.weights(x.channels, x.channels, kernel), net.weights(x.channels), **options
    )
    lengths = np.where(x.lengths >= 1, (x.lengths - 1) * factor + field + more - sum(pads), -1)
    return net.resized(x, name, lengths, rate=x.rate * factor)


def resized(net: Architecture, x: Signal, factor: int) -> Signal:
    mode = net.random.choice(["nearest", "nearest", "linear", "cubic"])
    coordinates = net.random.choice(["asymmetric", "half_pixel", "pytorch_half_pixel"])
    options: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        options["nearest_mode"] = net.random.choice(["floor", "round_prefer_floor"])
    if net.chance(0.5):
        target = ["", net.const([1, 1, factor])]
    else:
        size = net.node("Mul", net.length_of(x), net.ints(factor))
        target = ["", "", net.node("Concat", net.ints(1, x.channels), size, axis=0)]
    lengths = np.where(x.lengths >= 1, x.lengths * factor, -1)
    return net.resized(x, net.node("Resize", x.name, *target, **options), lengths, rate=x.rate * factor)


def repeated(net: Architecture, x: Signal, factor: int) -> Signal:
    """Each position several times, by an axis that is stretched and flattened (repeat_interleave)."""
    wide = net.node("Unsqueeze", x.name, net.ints(3))
    if net.chance(0.5):
        wide = net.node("Expand", wide, net.ints(1, 1, 1, factor))
    else:
        wide = net.node("Tile", wide, net.ints(1, 1, 1, factor))
    return net.resized(x, _flat(net, x, wide, x.channels, factor), x.lengths * factor, rate=x.rate * factor)


def expanded(net: Architecture, x: Signal, factor: int) -> Signal:
    """Zeros between the positions."""
    zeros = net.node("Mul", x.name, net.const([[[0.0]]]))
    pieces = [net.node("Unsqueeze", one, net.ints(3)) for one in (x.name, *[zeros] * (factor - 1))]
    wide = net.node("Concat", *pieces, axis=3)
    return net.resized(x, _flat(net, x, wide, x.channels, factor), x.lengths * factor, rate=x.rate * factor)


def _flat(net: Architecture, x: Signal, wide: str, channels: int, factor: int) -> str:
    """[1, channels, positions, factor], the last two axes as one."""
    if net.chance(0.5):
        return net.node("Reshape", wide, net.ints(1, channels, -1))
    size = net.node("Mul", net.length_of(x), net.ints(factor))
    return net.node("Reshape", wide, net.node("Concat", net.ints(1, channels), size, axis=0))


def shuffled(net: Architecture, x: Signal, factor: int) -> Signal:
    """Sub-pixels: channels become positions."""
    wide = convolved(net, x, 1, channels=x.channels * factor)
    apart = net.node("Reshape", wide.name, net.ints(1, x.channels, factor, -1))
    turned = net.node("Transpose", apart, perm=[0, 1, 3, 2])
    return net.resized(x, _flat(net, x, turned, x.channels, factor), x.lengths * factor, rate=x.rate * factor)


def blocks(net: Architecture, x: Signal) -> Signal:
    """Positions become channels, where the lengths are multiples."""
    factor = net.between(2, 3)
    whole = x.lengths[x.lengths >= 0] % factor == 0
    if not whole.all() or x.rate % factor:
        return plain(net, x)
    cutting = net.node("Reshape", x.name, net.ints(1, x.channels, -1, factor))
    turned = net.node("Transpose", cutting, perm=[0, 1, 3, 2])
    flat = net.node("Reshape", turned, net.ints(1, x.channels * factor, -1))
    lengths = np.where(x.lengths >= 0, x.lengths // factor, -1)
    wide = net.resized(x, flat, lengths, channels=x.channels * factor, rate=x.rate / factor)
    return convolved(net, wide, 1, channels=x.channels)


def up(net: Architecture, x: Signal) -> Signal:
    return upsampled(net, x)


def in_form_of_a_u(net: Architecture, x: Signal) -> Signal:
    """Down and up again, with what was there on the way down beside it."""
    depth, kept = net.between(1, 2), list[Signal]()
    for _ in range(depth):
        x = net.random.choice([plain, gated])(net, x)
        kept.append(x)
        if net.chance(0.5):
            x = convolved(
                net, x, net.random.choice([2, 3, 4]), stride=2, pads=net.random.choice([(0, 0), (1, 1), (2, 0)])
            )
        else:
            kind = net.random.choice(["MaxPool", "AveragePool"])
            x = net.resized(
                x,
                net.node(kind, x.name, kernel_shape=[2], strides=[2]),
                window(x.lengths, 2, 1, 2, (0, 0)),
                rate=x.rate / 2,
            )
    x = plain(net, x)
    for skip in reversed(kept):
        x = upsampled(net, x, 2)
        valid = (x.lengths >= 0) & (skip.lengths >= 0)
        if not valid.any():
            return x
        parts = together(net, x, skip)
        if parts is None:  # the ends differ by an odd number for some signals: the front of both is kept
            return x
        x = stacked(net, parts, skip.channels) if net.chance(0.6) else joined(net, "Add", *parts)
    return x
