"""Cases of the gates of recurrent networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SIZES = {"B": 2, "H": 3}


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _lstm(preact: Any, c_prev: Any) -> Any:
    size = c_prev.shape[-1]
    i, o, f, g = (preact[..., size * gate : size * (gate + 1)] for gate in range(4))
    c = _sigmoid(f) * c_prev + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru(xh: Any, rh: Any, h_prev: Any) -> Any:
    size = h_prev.shape[-1]
    x_z, x_r, x_g = (xh[..., size * gate : size * (gate + 1)] for gate in range(3))
    r_z, r_r, r_g = (rh[..., size * gate : size * (gate + 1)] for gate in range(3))
    z, r = _sigmoid(x_z + r_z), _sigmoid(x_r + r_r)
    return (1 - z) * np.tanh(x_g + r * r_g) + z * h_prev


_CASES = [
    Case("LstmEpilogue-f32", LstmEpilogue(3), ["B,12,f32", "B,3,f32"], _lstm, _SIZES),
    Case("LstmEpilogue-f16", LstmEpilogue(3), ["B,12,f16", "B,3,f16"], _lstm, _SIZES),
    Case("LstmEpilogue-rank 3", LstmEpilogue(3), ["1,B,12,f32", "1,B,3,f32"], _lstm, _SIZES),
    Case("LstmEpilogue-symbolic", LstmEpilogue(symbol("H")), ["B,4*H,f32", "B,H,f32"], _lstm, _SIZES),
    Case(
        "LstmEpilogue-extremes",
        LstmEpilogue(1),
        [Arg("1,4,f32", [1e4, 1e4, -1e4, -1e4]), Arg("1,1,f32", 3)],
        lambda *_: (np.array([[np.tanh(-1.0)]]), np.array([[-1.0]])),
    ),
    Case("GruEpilogue-f32", GruEpilogue(3), ["B,9,f32", "B,9,f32", "B,3,f32"], _gru, _SIZES),
    Case("GruEpilogue-f64", GruEpilogue(3), ["B,9,f64", "B,9,f64", "B,3,f64"], _gru, _SIZES),
    Case("GruEpilogue-bf16", GruEpilogue(3), ["B,9,bf16", "B,9,bf16", "B,3,bf16"], _gru, _SIZES),
]

ROWS.add(CASES, "recurrent", _CASES)
