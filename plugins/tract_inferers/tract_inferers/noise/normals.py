"""Standard normal numbers from the words of a counter-based generator."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tract_inferers.noise.philox import BLOCKS, scramble

Array = np.ndarray[Any, Any]
Numbers = np.ndarray[Any, np.dtype[np.uint64]]

_UNIT: Final = 2.0**-53


def normals(out: Array, keys: Numbers, ids: Numbers, steps: Numbers) -> None:
    """Fill ``out``, of shape (rows, count): row by row the first of those that ``ids`` and ``steps`` of it give.

    The words w0, w1, w2, w3 of a block become four normals, by Box and Muller (1958) in f64: with r the root of
    -2 ln u, u = ((w0 >> 11) + 1) / 2**53, and a = 2 pi (w1 >> 11) / 2**53, the first is r cos a, the second r sin a;
    the third and fourth are the same of w2 and w3. They are rounded to the type of ``out``. ``keys``: see
    `keys_of_rounds`.
    """
    rows, count = out.shape
    blocks = -(-count // 4)
    found = np.empty((rows * blocks, 4))
    for first in range(0, rows * blocks, BLOCKS):
        row, block = np.divmod(np.arange(first, min(first + BLOCKS, rows * blocks)), blocks)
        even = np.concatenate([block.astype(np.uint64) + np.uint64(1), ids[row]])
        odd = np.concatenate([steps[row], np.zeros(len(row), np.uint64)])
        _box_muller(*scramble(even, odd, keys), found[first : first + BLOCKS])
    out[...] = found.reshape(rows, 4 * blocks)[:, :count]


def _box_muller(even: Numbers, odd: Numbers, out: Array) -> None:
    """From words 0 and 2, and words 1 and 3, both of shape (2 n,), four normals each: shape (n, 4)."""
    radius = ((even >> np.uint64(11)) + np.uint64(1)).astype(np.float64)
    radius *= _UNIT
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    angle = (odd >> np.uint64(11)).astype(np.float64)
    angle *= 2 * np.pi * _UNIT
    half = len(out)
    for place, part in enumerate((np.cos, np.sin)):
        found = part(angle) * radius
        out[:, place], out[:, place + 2] = found[:half], found[half:]
