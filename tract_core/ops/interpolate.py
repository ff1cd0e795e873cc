"""Interpolation along one axis: which elements are read for a place between them, and with which weights.

Places are in elements: 0 is the centre of the first one. The cubic kernel is that of R. Keys, "Cubic convolution
interpolation for digital image processing" (1981).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import floor

import numpy as np

from tract_core.plugins.keys import Array


class Interpolator(Enum):
    """How elements are blended: not at all, by distance from 2 neighbours, or by a cubic from 4."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"

    @property
    def reach(self) -> int:
        """How many elements are read along one axis."""
        return {Interpolator.NEAREST: 1, Interpolator.LINEAR: 2, Interpolator.CUBIC: 4}[self]


def nearest_tap(places: Array, rounding: Callable[[Array], Array]) -> tuple[Array, Array]:
    """The one element that stands for each place, as `blended_taps` gives several."""
    return rounding(places).astype(np.int64)[np.newaxis], np.ones((1, *places.shape))


def blended_taps(mode: Interpolator, places: Array, a: float, stretch: float = 1.0) -> tuple[Array, Array]:
    """For all places at once, the elements that are read and their weights: two arrays of (elements, places).

    The elements may lie outside the axis. ``mode`` is linear or cubic, ``a`` the coefficient of the cubic kernel.
    ``stretch``: how much wider than usual the kernel is, 1 or more; it then averages over as many more elements.
    """
    start = floor(-mode.reach / 2 * stretch) + 1
    steps = np.arange(start, 2 - start).reshape(-1, *(1,) * places.ndim)
    indices = np.floor(places) + steps
    weights = _kernel(mode, (indices - places) / stretch, a)
    if stretch > 1:
        weights = weights / weights.sum(axis=0)
    return indices.astype(np.int64), weights


def _kernel(mode: Interpolator, distance: Array, a: float) -> Array:
    d = np.abs(distance)
    if mode is Interpolator.LINEAR:
        return np.maximum(1 - d, 0)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))
