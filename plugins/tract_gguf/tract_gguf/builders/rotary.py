"""Rotary embedding: pairs of elements of queries and keys turn by angles that grow with the position.

How fast each pair turns is a vector of numbers, which the variants of scaling change (Su et al., arXiv:2104.09864, and
YaRN, arXiv:2309.00071; LongRoPE, arXiv:2402.13753, has a vector for short texts and one for long ones).
"""

from __future__ import annotations

from math import ceil, floor, log, pi

import numpy as np

from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_gguf.builders.hyperparameters import Hyperparameters


@frozen
class Rotary:
    """What turns. ``cos``, ``sin``: [S,1,1,size], of the angle of each position and element, scaled.

    ``size``: elements of a head that turn, from the first one on. ``neighbours``: whether a pair are two elements side
    by side; otherwise one of the first half of these, and that of the second half at the same place.
    """

    cos: Wired
    sin: Wired
    size: int
    neighbours: bool

    def turned(self, x: Wired) -> Wired:
        """``x`` [B,S,heads,groups,size of a head] turned by the angles of its positions."""
        whole = x.shape[-1] == self.size
        first = x if whole else x[..., : self.size]
        turned = first * self.cos + self._by_a_quarter(first) * self.sin
        return turned if whole else turned.concat([x[..., self.size :]], -1)

    def _by_a_quarter(self, x: Wired) -> Wired:
        """(-b, a) for each pair (a, b)."""
        half = self.size // 2
        if not self.neighbours:
            return (-x[..., half:]).concat([x[..., :half]], -1)
        pairs = x.reshape((*x.shape[:-1], half, 2))
        return (-pairs[..., 1:]).concat([pairs[..., :1]], -1).reshape(x.shape)


def rotary(
    network: Hyperparameters, positions: Wired, *, neighbours: bool, base: float | None = None, scaled: bool = True
) -> Rotary:
    """The rotary embedding of a network at ``positions`` [S] in f32. Raises ModelError.

    ``base``: how many times slower the last pair turns than the first, where that is not what the file says.
    ``scaled``: whether the scaling of the file counts.
    """
    size = network.integer("rope.dimension_count", network.key_size)
    if size < 2 or size % 2 or size > network.key_size:
        raise network.wrong("rope.dimension_count", size, f"an even number from 2 to {network.key_size}")
    base = network.number("rope.freq_base", 10000.0) if base is None else base
    if not 0 < base < float("inf"):
        raise network.wrong("rope.freq_base", base, "a number above 0")
    speeds = base ** (-np.arange(0, size, 2) / size)
    scale = 1.0
    angles = positions[:, None]
    if scaled:
        speeds, scale = _scaled(network, speeds, base)
        found = _of_length(network, positions, speeds)
    else:
        found = positions.operand(np.asarray(speeds, np.float32))
    angles = _for_each_element(angles * found[None], neighbours)
    cos, sin = angles.cos(), angles.sin()
    if scale != 1:
        cos, sin = cos * scale, sin * scale
    return Rotary(cos[:, None, None], sin[:, None, None], size, neighbours)


def _for_each_element(angles: Wired, neighbours: bool) -> Wired:
    """[S,size/2] -> [S,size]: both elements of a pair turn by its angle."""
    if not neighbours:
        return angles.concat([angles], -1)
    pairs = angles[..., None]
    return pairs.concat([pairs], -1).reshape((angles.shape[0], 2 * angles.shape[1]))


def _scaled(network: Hyperparameters, speeds: Array, base: float) -> tuple[Array, float]:
    """The speeds as the file has them scaled, and what the turned pairs are multiplied by."""
    if "rope_freqs.weight" in network.weights:
        speeds = speeds / network.weights.array("rope_freqs.weight", speeds.shape)
    kind = network.text("rope.scaling.type", "none")
    factor = network.number("rope.scaling.factor", 1.0)
    if kind != "none" and not 0 < factor < float("inf"):
        raise network.wrong("rope.scaling.factor", factor, "a number above 0")
    if kind == "linear":
        return speeds / factor, 1.0
    if kind == "yarn":
        return _yarn(network, speeds, base, factor)
    if kind == "longrope" or "rope_factors_long.weight" in network.weights:
        return speeds, network.number("rope.scaling.attn_factor", 1.0)
    if kind != "none":
        raise Unsupported(f"positions are scaled by {kind!r:.80}, known are linear, yarn, longrope and none")
    return speeds, 1.0


def _yarn(network: Hyperparameters, speeds: Array, base: float, factor: float) -> tuple[Array, float]:
    """Fast pairs turn as they did, slow ones ``factor`` times slower, those between somewhere between."""
    size, trained = 2 * len(speeds), network.number("rope.scaling.original_context_length", network.context_length)
    fast, slow = network.number("rope.scaling.yarn_beta_fast", 32.0), network.number("rope.scaling.yarn_beta_slow", 1.0)
    if min(trained, fast, slow) <= 0 or base == 1:
        raise Unsupported("positions are scaled by 'yarn', with numbers that are not above 0")
    ends = [size * log(trained / (turns * 2 * pi)) / (2 * log(base)) for turns in (fast, slow)]
    if network.flag("rope.scaling.yarn_whole_ends", default=True):
        ends = [floor(ends[0]), ceil(ends[1])]
    low, high = max(ends[0], 0), min(ends[1], size - 1)
    slowed = np.clip((np.arange(len(speeds)) - low) / max(high - low, 0.001), 0, 1)
    attention = network.number("rope.scaling.attn_factor", 1.0) * (1 + 0.1 * log(factor))
    return speeds * (1 - slowed) + speeds / factor * slowed, attention


def _of_length(network: Hyperparameters, positions: Wired, speeds: Array) -> Wired:
    """The speeds [size/2], which for LongRoPE depend on how many positions there are."""
    if "rope_factors_long.weight" not in network.weights:
        return positions.operand(np.asarray(speeds, np.float32))
    long, short = (
        positions.operand(np.asarray(speeds / network.weights.array(name, speeds.shape), np.float32))
        for name in ("rope_factors_long.weight", "rope_factors_short.weight")
    )
    trained = network.integer("rope.scaling.original_context_length", network.context_length)
    count = positions.with_outlet(positions.wire.const(network.length))
    return (count > trained)[None].where(long, short)
