"""The weights of interpolation along one axis, as `tract_core.ops.interpolate` means them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tract_core.ops.interpolate import Interpolator
from tract_llvm.language.function import where
from tract_llvm.language.values import Value


def weight_of(mode: Interpolator, distance: Value, a: float) -> Value:
    """The weight of an element so far from the place that is wanted. ``a``: the coefficient of the cubic kernel."""
    return _WEIGHTS[mode](distance.function.intrinsic("fabs", distance), a)


def _linear(d: Value, a: float) -> Value:
    return where(d < 1.0, 1.0 - d, 0.0)


def _cubic(d: Value, a: float) -> Value:
    near = ((a + 2) * d - (a + 3)) * d * d + 1.0
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return where(d <= 1.0, near, where(d < 2.0, far, 0.0))


_WEIGHTS: Final[Mapping[Interpolator, Callable[[Value, float], Value]]] = {
    Interpolator.NEAREST: lambda d, _a: d.like(1.0),
    Interpolator.LINEAR: _linear,
    Interpolator.CUBIC: _cubic,
}
