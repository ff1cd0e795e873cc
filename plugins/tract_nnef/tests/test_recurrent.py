"""Recurrent networks that are one operator of a file, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from documents import compute

T, B, I, H = 5, 2, 3, 4
STATEMENTS = """
( y, last ) = tract_core_gru_seq(x = x, {weights} r = r, {bias} initial_h = h, hidden = 4, chunk = {chunk},
    has_bias = {has_bias}, reset_every_turn = 0, emit_y = 1, projected = {projected});
"""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, w, r, b, *, h, backward):
    """Gates update, reset, hidden; the reset gate multiplies the product. ``x`` [B, T, I], ``h`` [B, 1, H]."""
    h, steps = h[:, 0], list(range(x.shape[1]))
    y = np.zeros((x.shape[0], x.shape[1], h.shape[1]))
    for step in reversed(steps) if backward else steps:
        own, seen = x[:, step] @ w.T + b[0, : len(w)], h @ r.T + b[0, len(w) :]
        (xz, xr, xn), (hz, hr, hn) = np.split(own, 3, 1), np.split(seen, 3, 1)
        z = sigmoid(xz + hz)
        h = (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h
        y[:, step] = h
    return y, h[:, None]


@pytest.mark.parametrize("chunk", [1, -1])
@pytest.mark.parametrize("projected", [0, 1])
@pytest.mark.parametrize("has_bias", [0, 1])
def test_a_whole_gru(chunk, projected, has_bias) -> None:
    random = np.random.default_rng(0)
    shapes = {"x": (B, T, I), "w": (3 * H, I), "r": (3 * H, H), "b": (1, 6 * H), "h": (B, 1, H)}
    given = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    if not has_bias:
        given["b"][:] = 0
    x, w, r, b, h = (one.astype(np.float64) for one in given.values())
    wanted = gru(x, w, r, b, h=h, backward=chunk < 0)
    if projected:
        given["x"] = given["x"] @ given.pop("w").T + given["b"][:, : 3 * H]
    if not has_bias:
        del given["b"]
    parts = {name: f"{name} = {name}," if name in given else "" for name in "wb"}
    body = STATEMENTS.format(weights=parts["w"], bias=parts["b"], chunk=chunk, has_bias=has_bias, projected=projected)
    for found, one in zip(compute(body, outputs="y, last", **given), wanted, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-5, atol=1e-6)
