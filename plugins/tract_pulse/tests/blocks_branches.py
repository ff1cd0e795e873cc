"""Blocks of several branches: residual sums, gates, and what is made of them."""

from __future__ import annotations

import numpy as np
from architectures import Architecture, Signal
from blocks_ends import aligned, together
from blocks_windows import causal_convolution, convolved, window


def joined(net: Architecture, op: str, *parts: Signal) -> Signal:
    """Tensors of one length, in any order."""
    mixed = list(parts)
    net.random.shuffle(mixed)
    found = mixed[0]
    for part in mixed[1:]:
        valid = (found.lengths >= 0) & (part.lengths >= 0)
        lengths = np.where(valid, found.lengths, -1)
        found = net.told(found, net.node(op, found.name, part.name), lengths=lengths)
    return found


def residual(net: Architecture, x: Signal) -> Signal:
    """Something that leaves the rate as it is, and the signal itself; what is wired first is drawn."""
    branch = x
    for _ in range(net.between(1, 2)):
        branch = net.random.choice([plain, causal_convolution, gated])(net, branch)
    parts = together(net, x, branch)
    return branch if parts is None else joined(net, net.random.choice(["Add", "Add", "Mul", "Sub"]), *parts)


def plain(net: Architecture, x: Signal) -> Signal:
    """A convolution without strides."""
    kernel, dilation = net.between(1, 5), net.random.choice([1, 1, 2, 4])
    field = (kernel - 1) * dilation
    pads = net.random.choice([(0, 0), (0, 0), (field, 0), (field // 2, field - field // 2), (0, field)])
    return convolved(net, x, kernel, dilation=dilation, pads=pads)


def gated(net: Architecture, x: Signal) -> Signal:
    """tanh times sigmoid, of two convolutions or of one with twice the channels."""
    kernel, dilation = net.between(1, 3), net.random.choice([1, 2, 4])
    field = (kernel - 1) * dilation
    pads = net.random.choice([(0, 0), (field, 0)])
    if net.chance(0.5):
        wide = convolved(net, x, kernel, dilation=dilation, pads=pads, channels=2 * x.channels)
        one, other = net.node("Split", wide.name, count=2, axis=1, num_outputs=2)
        parts = [net.told(wide, name, channels=x.channels) for name in (one, other)]
    else:
        parts = [convolved(net, x, kernel, dilation=dilation, pads=pads) for _ in range(2)]
    first, second = parts
    kinds = net.random.choice([("Tanh", "Sigmoid"), (None, "Sigmoid"), ("Relu", "HardSigmoid")])
    acted = [
        part.name if kind is None else net.node(kind, part.name)
        for part, kind in zip((first, second), kinds, strict=True)
    ]
    return net.told(first, net.node("Mul", *acted))


def wavenet(net: Architecture, x: Signal) -> Signal:
    """Layers of growing dilation, each with a residual sum, and the sum of what all of them give beside it."""
    skips: list[Signal] = []
    valid = net.chance(0.5)
    kernel = net.between(2, 3)
    for depth in range(net.between(2, 4)):
        dilation = 2**depth
        field = (kernel - 1) * dilation
        pads = (0, 0) if valid else (field, 0)
        one, other = (convolved(net, x, kernel, dilation=dilation, pads=pads) for _ in range(2))
        gate = net.told(one, net.node("Mul", net.node("Tanh", one.name), net.node("Sigmoid", other.name)))
        skips.append(convolved(net, gate, 1))
        kept = aligned(net, x, gate, "front")
        assert kept is not None
        x = joined(net, "Add", convolved(net, gate, 1), kept)
    if not net.chance(0.7):
        return x
    cuts = [aligned(net, skip, skips[-1], "front") for skip in skips]
    return joined(net, "Add", *(one for one in cuts if one is not None))


def inception(net: Architecture, x: Signal) -> Signal:
    """Branches of several windows, one above the other."""
    branches = [
        net.random.choice([plain, causal_convolution, gated, same_pool])(net, x) for _ in range(net.between(2, 3))
    ]
    if net.chance(0.4):
        branches.append(x)
    parts = together(net, *branches)
    if parts is None:
        return branches[0]
    return stacked(net, parts, x.channels)


def stacked(net: Architecture, parts: list[Signal], channels: int) -> Signal:
    valid = np.logical_and.reduce([part.lengths >= 0 for part in parts])
    laid = net.node("Concat", *(part.name for part in parts), axis=1)
    both = net.told(
        parts[0],
        laid,
        lengths=np.where(valid, parts[0].lengths, -1),
        channels=sum(part.channels for part in parts),
    )
    return convolved(net, both, 1, channels=channels)


def same_pool(net: Architecture, x: Signal) -> Signal:
    name = net.node("MaxPool", x.name, kernel_shape=[3], pads=[1, 1])
    return net.resized(x, name, window(x.lengths, 3, 1, 1, (1, 1)))
