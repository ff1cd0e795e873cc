"""DynamicQuantizeLSTM by its definition: in float64, but for what the definition quantises in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def quantised(x: Array) -> tuple[Array, float]:
    """By the definition of DynamicQuantizeLinear, in float32 where it says so: integers less the zero point, scale."""
    low, high = min(np.float32(0), x.min(initial=0)), max(np.float32(0), x.max(initial=0))
    scale = np.float32((high - low) / np.float32(255)) or np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero, 0, 255) - zero, float(scale)


def textbook(
    inputs: Sequence[Array | None], *, backward: bool = False, states: Array | None = None
) -> tuple[Array, Array, Array]:
    """Y, Y_h and Y_c of one direction. ``inputs``: all twelve, ``None`` for what is not given.

    ``states``: an engine's Y, [steps, 1, batch, hidden]; every step then starts from the state that the engine found in
    the step before, so that what comes out differs from ``states`` by what the engine does wrong in one step. Without
    that a state that falls on the other side of a rounding moves all that follow it.
    """
    x, w, r, bias, ends, h, c, peepholes, w_scale, w_zero, r_scale, r_zero = inputs

    def product(a: Array, q: Array, scale: Array, zero: Array) -> Array:
        integers, a_scale = quantised(a.astype(np.float32))
        return integers @ (q[0].astype(int) - zero[0]) * a_scale * scale[0].astype(float)

    def sigmoid(v: Array) -> Array:
        return 1 / (1 + np.exp(-v))

    hidden, (steps, batch) = r.shape[1], x.shape[:2]
    h, c = (np.zeros((batch, hidden)) if one is None else one[0].astype(float) for one in (h, c))
    bias = 0 if bias is None else bias[0].reshape(2, -1).sum(0, dtype=float)
    p_i, p_o, p_f = (0, 0, 0) if peepholes is None else np.split(peepholes[0].astype(float), 3)
    lives = np.arange(steps)[:, None, None] < (steps if ends is None else ends[None, :, None])
    gates = product(np.where(lives, x, 0), w, w_scale, w_zero)
    y = np.zeros((steps, batch, hidden))
    for t in reversed(range(steps)) if backward else range(steps):
        live = lives[t]
        recurrent = product(np.where(live, h, 0), r, r_scale, r_zero)
        i, o, f, g = np.split(gates[t] + recurrent + bias, 4, axis=1)
        c_new = sigmoid(f + p_f * c) * c + sigmoid(i + p_i * c) * np.tanh(g)
        h_new = sigmoid(o + p_o * c_new) * np.tanh(c_new)
        y[t] = np.where(live, h_new, 0)
        h, c = np.where(live, h_new if states is None else states[t, 0], h), np.where(live, c_new, c)
    return y[:, None], h[None], c[None]


def states_of(inputs: Sequence[Array | None], direction: str, states: Array) -> Array:
    """Y of all directions, [steps, directions, batch, hidden], each step from the state that an engine found before it.

    ``states``: the engine's Y.
    """
    shared = (0, 4)  # x and the lengths have no axis of directions; h and c lead with it, as the weights do
    found = []
    for place in range(states.shape[1]):
        one = [
            array if array is None or slot in shared else array[place : place + 1] for slot, array in enumerate(inputs)
        ]
        backward = direction == "reverse" or place == 1
        found.append(textbook(one, backward=backward, states=states[:, place : place + 1])[0])
    return np.concatenate(found, axis=1)
