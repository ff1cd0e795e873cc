"""Elements divided by the energy of their neighbours."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.lrn import Lrn
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Lrn)
def lower_lrn(op: Lrn, site: Site) -> Callable[[mx.array], mx.array]:
    """Differences of running sums would lose digits: the squares of each distance are added."""

    def divided(x: mx.array) -> mx.array:
        data, channels = wide(x), x.shape[op.axis]
        if x.size == 0:
            return x
        before, after = (op.size - 1) // 2, op.size // 2
        ends = [(before, after) if axis == op.axis else (0, 0) for axis in range(x.ndim)]
        squares = mx.pad(data * data, ends)
        lead = (slice(None),) * op.axis
        energy = mx.zeros_like(data)
        for shift in range(op.size):
            if shift - before < channels and before - shift < channels:
                energy = energy + squares[(*lead, slice(shift, shift + channels))]
        return (data * mx.power(op.bias + op.alpha / op.size * energy, -op.beta)).astype(x.dtype)

    return divided
