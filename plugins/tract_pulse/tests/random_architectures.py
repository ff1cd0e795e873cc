"""Random networks of blocks."""

from __future__ import annotations

from collections.abc import Callable

from architectures import Architecture, Signal
from blocks_branches import gated, inception, residual, wavenet
from blocks_ends import crop, pad, shifted, surrounded
from blocks_positions import activation, conditioned, deltas, dense, normalised, recurrent, running, so_far, told
from blocks_rates import blocks, in_form_of_a_u, up
from blocks_windows import causal_convolution, convolution, flattened, frames, in_two_dimensions, pool, thinned

Block = Callable[[Architecture, Signal], Signal]

ALL: list[Block] = [
    convolution,
    convolution,
    causal_convolution,
    frames,
    in_two_dimensions,
    flattened,
    pool,
    thinned,
    pad,
    crop,
    crop,
    shifted,
    surrounded,
    residual,
    residual,
    residual,
    gated,
    wavenet,
    inception,
    up,
    up,
    blocks,
    in_form_of_a_u,
    activation,
    normalised,
    so_far,
    recurrent,
    running,
    dense,
    deltas,
    conditioned,
    told,
]


def network(seed: int) -> Architecture:
    """A network of one to eight blocks, for which there are signals."""
    while True:
        net = Architecture(seed)
        x = net.source("x", net.between(1, 4), net.random.choice([1, 1, 1, 2, 4, 6]))
        for _ in range(net.between(1, 8)):
            before = net.mark()
            found = net.random.choice(ALL)(net, x)
            if not (found.lengths > 0).any() or net.unit > 64:
                net.rewind(before)
            else:
                x = found
        net.outputs.append(x)
        if net.fits(*net.outputs):
            return net
        seed += 1 << 32
