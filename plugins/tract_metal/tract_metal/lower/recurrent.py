"""The gates of recurrent networks."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


def _sigmoid(x: mx.array) -> mx.array:
    return 0.5 + 0.5 * mx.tanh(0.5 * x)  # as 1 / (1 + exp(-x)), without an exponential that overflows


@ROWS.row(METAL, LstmEpilogue)
def lower_lstm(op: LstmEpilogue, site: Site) -> Callable[..., tuple[mx.array, mx.array]]:
    """Gates in order i, o, f, g."""

    def state(preact: mx.array, c_prev: mx.array) -> tuple[mx.array, mx.array]:
        i, o, f, g = mx.split(wide(preact), 4, axis=-1)
        c = _sigmoid(f) * wide(c_prev) + _sigmoid(i) * mx.tanh(g)
        h = _sigmoid(o) * mx.tanh(c)
        return h.astype(c_prev.dtype), c.astype(c_prev.dtype)

    return state


@ROWS.row(METAL, GruEpilogue)
def lower_gru(op: GruEpilogue, site: Site) -> Callable[..., mx.array]:
    """Gates in order z, r, g."""

    def state(xh: mx.array, rh: mx.array, h_prev: mx.array) -> mx.array:
        x_z, x_r, x_g = mx.split(wide(xh), 3, axis=-1)
        r_z, r_r, r_g = mx.split(wide(rh), 3, axis=-1)
        z = _sigmoid(x_z + r_z)
        g = mx.tanh(x_g + _sigmoid(x_r + r_r) * r_g)
        return ((1 - z) * g + z * wide(h_prev)).astype(h_prev.dtype)

    return state
