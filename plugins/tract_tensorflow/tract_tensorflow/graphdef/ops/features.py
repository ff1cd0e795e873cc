"""Features of sounds."""

from __future__ import annotations

import math

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import FactError, Unsupported
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.fft import Fft
from tract_core.ops.fft_wiring import first_half, of_length, pairs_of_real
from tract_core.ops.gather import Gather
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "AudioSpectrogram")
def spectrogram(node: GraphNode, wire: GraphWiring) -> Wired:
    """The energy of each frequency, or its root, in pieces of a sound (samples, channels), under a raised cosine"""
    x = wire.tensor(0)
    size, stride = node.integer("window_size"), node.integer("stride")
    if x.rank != 2 or size < 2 or stride < 1 or size > 1 << 20:
        raise FactError(f"a sound of 2 axes in windows of {size}, every {stride}, is wanted; found {x.fact}")
    length = 1 << (size - 1).bit_length()
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)).astype(np.float32)
    count = (x.shape[0] - size) // stride + 1
    starts = wire.through(wire_range, wire.const(0), wire.const(count * stride), wire.const(stride))
    places = Wired(wire, starts)[:, None] + np.arange(size)[None]
    frames = x.transpose((1, 0)).op(Gather(1), places) * window[None, None]
    pairs = of_length(wire, pairs_of_real(wire, frames[..., None].outlet), 2, wire.const(length))
    found = Wired(wire, first_half(wire, wire.op(Fft(2), pairs), 2))
    energy = found.square().sum([3]).squeeze([3])
    return energy if node.flag("magnitude_squared") else energy.sqrt()


@tf_op(ROWS, "Mfcc")
def mfcc(node: GraphNode, wire: GraphWiring) -> Wired:
    """The first coefficients of the cosine transform of the logarithms of bands, of a spectrogram of energies"""
    x = wire.tensor(0)
    rate = wire.known_ints(wire.number(wire.input(1)), "sample rate of Mfcc")[0]
    bands, count = node.integer("filterbank_channel_count", 40), node.integer("dct_coefficient_count", 13)
    low, high = node.number("lower_frequency_limit", 20.0), node.number("upper_frequency_limit", 4000.0)
    if (
        x.rank != 3
        or is_symbolic(x.shape[2])
        or not _is_sane(int(x.shape[2]), rate, bands, low, high)
        or not 1 <= count <= bands
    ):
        raise Unsupported(f"{count} coefficients of {bands} bands from {low} to {high} hertz, of {x.fact} at {rate}")
    weights = _band_weights(int(x.shape[2]), rate, bands, low, high)
    energies = _times(x.sqrt().cast(DatumType.F64), weights)
    steps = np.arange(count)[None] * (np.arange(bands)[:, None] + 0.5)
    cosines = math.sqrt(2 / bands) * np.cos(np.pi / bands * steps)
    return _times(energies.maximum(1e-12).log(), cosines).cast(DatumType.F32)


def _is_sane(bins: int, rate: int, bands: int, low: float, high: float) -> bool:
    """Whether so many frequencies can be shared out to so many bands."""
    ends = 0 <= low < high < math.inf
    return ends and rate >= 1 and bands <= 4096 and 2 <= bins <= 1 << 20 and bins * bands <= 1 << 24


def _times(x: Wired, matrix: Array) -> Wired:
    return x.with_outlet(x.wire.through(wire_matmul, x.outlet, x.wire.const(matrix)))


def _band_weights(bins: int, rate: int, bands: int, low: float, high: float) -> Array:
    """How much of each frequency belongs to each band, [bins, bands]: triangles, equally wide on the mel scale.

    That scale is 1127 log(1 + hertz / 700). The first bin and those outside of the range belong to none.
    """

    def mel(hertz: float | Array) -> Array:
        return 1127 * np.log1p(np.asarray(hertz) / 700)

    width = (mel(high) - mel(low)) / (bands + 1)
    centres = mel(low) + width * np.arange(1, bands + 2)
    hertz_per_bin = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / hertz_per_bin), int(high / hertz_per_bin)
    weights = np.zeros((bins, bands))
    for place in range(max(first, 1), min(last, bins - 1) + 1):
        at = float(mel(place * hertz_per_bin))
        band = int(np.searchsorted(centres, at, side="left")) - 1  # the last whose centre is below, or -1
        before = centres[band] if band >= 0 else float(mel(low))
        after = centres[min(band + 1, bands)]
        share = (after - at) / (after - before)
        if band >= 0:
            weights[place, band] += share
        if band + 1 < bands:
            weights[place, band + 1] += 1 - share
    return weights
