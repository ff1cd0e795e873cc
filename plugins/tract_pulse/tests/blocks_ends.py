"""Blocks that pad and cut a signal at its ends, and bring several to one length."""

from __future__ import annotations

import numpy as np
from architectures import END, Architecture, Signal


def padded(
    net: Architecture, x: Signal, before: int, after: int, *, mode: str = "constant", value: float = 0
) -> Signal:
    pads = net.ints(0, 0, before, 0, 0, after)
    inputs = [x.name, pads, net.const(value)] if mode == "constant" else [x.name, pads]
    lengths = np.where(x.lengths >= 0, x.lengths + before + after, -1)
    if mode == "edge":
        lengths = np.where(x.lengths >= 1, lengths, -1)
    if mode == "reflect":
        lengths = np.where(x.lengths > max(before, after), lengths, -1)
    return net.resized(x, net.node("Pad", *inputs, mode=mode), lengths)


def pad(net: Architecture, x: Signal) -> Signal:
    ends = net.random.choice([(net.between(0, 5), 0), (0, net.between(0, 5)), (net.between(0, 5), net.between(0, 5))])
    mode = net.random.choice(["constant", "constant", "edge", "reflect"])
    return padded(net, x, *ends, mode=mode, value=net.random.choice([0, 0, 1.5]))


def cut(net: Architecture, x: Signal, front: int, back: int) -> Signal:
    """Without some positions at either end. A signal that is shorter gives none, as in PyTorch and ONNX."""
    lengths = np.where(x.lengths >= 0, np.maximum(x.lengths - front - back, 0), -1)
    return net.resized(x, net.slice(x.name, front, -back if back else END), lengths)


def crop(net: Architecture, x: Signal) -> Signal:
    front, back = net.random.choice(
        [(net.between(0, 5), 0), (0, net.between(0, 5)), (net.between(0, 4), net.between(0, 4))]
    )
    return cut(net, x, front, back)


def shifted(net: Architecture, x: Signal) -> Signal:
    """As late as it was, with something put in front: zeros, or what a network has learned."""
    by = net.between(1, 4)
    first = net.const(np.zeros((1, x.channels, by))) if net.chance(0.5) else net.weights(1, x.channels, by)
    if net.chance(0.5):
        both = net.node("Concat", first, x.name, axis=2)
        lengths = np.where(x.lengths >= 0, x.lengths + by, -1)
        return cut(net, net.resized(x, both, lengths), 0, by) if net.chance(0.5) else net.resized(x, both, lengths)
    kept = cut(net, x, 0, by)
    return net.resized(
        x, net.node("Concat", first, kept.name, axis=2), np.where(kept.lengths >= 0, kept.lengths + by, -1)
    )


def surrounded(net: Architecture, x: Signal) -> Signal:
    """With tokens before and behind it."""
    before, behind = net.between(0, 3), net.between(1, 3)
    parts = [net.weights(1, x.channels, count) for count in (before, behind)]
    lengths = np.where(x.lengths >= 0, x.lengths + before + behind, -1)
    return net.resized(x, net.node("Concat", parts[0], x.name, parts[1], axis=2), lengths)


def aligned(net: Architecture, x: Signal, wanted: Signal, places: str | None = None) -> Signal | None:
    """``x`` as long as another tensor, cut or padded; ``None`` where that would take the end of the signal."""
    difference = x.behind(wanted)
    if difference is None:
        return _fitted(net, x, wanted)
    if difference == 0:
        return x
    if difference < 0:
        before = net.random.choice([0, -difference, -difference // 2])
        return padded(net, x, before, -difference - before)
    front = {"front": difference, "back": 0, "centre": difference // 2}[
        places or net.random.choice(["front", "back", "centre"])
    ]
    lengths = np.where((x.lengths >= 0) & (wanted.lengths >= 0), wanted.lengths, -1)
    way = net.between(0, 3)
    if way == 0:
        name = net.slice(x.name, front, front - difference if front < difference else END)
    elif way == 1:  # counted from the beginning, up to an end that is computed
        end = net.node("Add", net.length_of(wanted), net.ints(front))
        name = net.slice(x.name, front, end)
    elif way == 2 and front == difference:  # as many as the other one has, from the end
        name = net.slice(x.name, net.node("Neg", net.length_of(wanted)), END)
        lengths = np.where(lengths == 0, -1, lengths)  # x[-0:] would be all of it
    else:  # from the middle, as networks in the form of a U do it
        more = net.node("Sub", net.length_of(x), net.length_of(wanted))
        start = net.node("Div", more, net.ints(2)) if front == difference // 2 else net.ints(front)
        name = net.slice(x.name, start, net.node("Add", start, net.length_of(wanted)))
    return net.resized(x, name, lengths)


def _fitted(net: Architecture, x: Signal, wanted: Signal) -> Signal | None:
    """Cut at the end, or padded there, by as much as the length of the signal says."""
    valid = (x.lengths >= 0) & (wanted.lengths >= 0)
    if x.rate != wanted.rate or not valid.any():
        return None
    more = (x.lengths - wanted.lengths)[valid]
    lengths = np.where(valid, wanted.lengths, -1)
    if more.min() >= 0:
        return net.resized(x, net.slice(x.name, 0, net.length_of(wanted)), lengths)
    if more.max() <= 0:
        missing = net.node("Sub", net.length_of(wanted), net.length_of(x))
        pads = net.node("Concat", net.ints(0, 0, 0, 0, 0), missing, axis=0)
        return net.resized(x, net.node("Pad", x.name, pads, net.const(0)), lengths)
    return None


def together(net: Architecture, *parts: Signal) -> list[Signal] | None:
    """Tensors brought to the length of one of them."""
    wanted = net.random.choice(parts)
    found = [aligned(net, part, wanted) for part in parts]
    return None if None in found else [one for one in found if one is not None]
