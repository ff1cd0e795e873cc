"""Fourier transforms, factor by factor of their length; complex numbers as pairs of real ones, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from tract_llvm.language.types import ElementType, numpy_type
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex, Stft
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.fft import FftPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()

_MOST: Final = 1 << 15
"""Numbers of the longest transform: places of its roots, times a factor, stay in 32 bits."""


@ROWS.row(CUDA, Fft)
def lower_fft(op: Fft, site: Site) -> str | None:
    """A launch for each factor of the length."""
    (x,) = site.inputs()
    size = x.shape[op.axis]
    if not isinstance(size, int) or size > _MOST:
        return f"kernels transform rows of a known length, up to {_MOST}"
    why = why_carried(site)
    if why is None:
        _Transform(site, op.axis, size, 1.0 if op.inverse else -1.0, None).add(x)
    return why


@ROWS.row(CUDA, Stft)
def lower_stft(op: Stft, site: Site) -> str | None:
    """The same for frames, which may share elements."""
    why = why_carried(site)
    if op.frame > _MOST:
        why = f"kernels transform frames of up to {_MOST}"
    if why is not None:
        return why
    (x,) = site.inputs()
    stride, shape = x.strides[op.axis], tuple(site.node.facts[0].shape)
    strides = (*x.strides[: op.axis], stride * op.stride, stride, *x.strides[op.axis + 1 :])
    window = None
    if op.window is not None:
        window = np.zeros(op.frame)
        before = (op.frame - op.window.array.size) // 2
        window[before : before + op.window.array.size] = op.window.array
    _Transform(site, op.axis + 1, op.frame, -1.0, window).add(replace(x, shape=shape, strides=strides))
    return None


@frozen
class _Transform:
    """Along an ``axis`` of so many ``points``. ``turn``: the sign of the roots. ``window``: factors of what is read."""

    site: Site
    axis: int
    points: int
    turn: float
    window: Array | None

    def add(self, x: View) -> None:
        """Add the launches. ``x``: pairs along the last axis."""
        lowering, computed = self.site.lowering, x.element.computed
        (result,) = self.site.results()
        angles = self.turn * 2 * np.pi * np.arange(self.points) / self.points
        roots = lowering.constant(_of_type(np.stack([np.cos(angles), np.sin(angles)], axis=-1), computed))
        factors, length = list(factors_of(self.points)), 1
        for number, radix in enumerate(factors):
            target = result if number == len(factors) - 1 else lowering.scratch(computed, result.shape)
            self._stage(x, target, radix, {"roots": roots, "length": length})
            x, length = target, length * radix

    def _stage(self, x: View, target: View, radix: int, given: dict[str, View | Dim]) -> None:
        axis, computed = self.axis, target.element.computed
        given |= {"points": self.points, "data.step": x.strides[axis]}
        given |= {"data.part": x.strides[-1], "result.part": target.strides[-1]}
        windowed = self.window is not None and given["length"] == 1
        if self.window is not None and windowed:
            given["window"] = self.site.lowering.constant(_of_type(self.window, computed))
        rows = [one for one in range(len(x.shape) - 1) if one != axis]
        order = [*rows, axis]
        strides = [[*(x.strides[one] for one in rows), 0], [target.strides[one] for one in order]]
        loops, _ = loops_over([target.shape[one] for one in order], strides, [len(rows)])
        plan = FftPlan(x.element, target.element, computed, len(loops), radix, windowed)
        launch_over(self.site, plan, loops, {"data": x, "result": target}, [target], **given)


def factors_of(number: int) -> Iterator[int]:
    """What it is a product of: as many fours as can be, then primes; at least one factor."""
    if number == 1:
        yield 1
    for factor in (4, 2):
        while number % factor == 0:
            yield factor
            number //= factor
    factor = 3
    while number > 1:
        factor = factor if factor * factor <= number else number
        while number % factor == 0:
            yield factor
            number //= factor
        factor += 2


def _of_type(array: Array, element: ElementType) -> Array:
    return np.ascontiguousarray(array.astype(numpy_type(element)))


@ROWS.row(CUDA, InnerDimToComplex)
def lower_to_complex(op: InnerDimToComplex, site: Site) -> None:
    """A view; a copy where pairs do not lie side by side."""
    (x,) = site.inputs()
    found = x.as_complex() or site.lowering.compact(x).as_complex()
    if found is None:
        (result,) = site.results()
        site.lowering.copy(x, result.as_parts(), site.group.nodes)
        return
    site.place(found)


@ROWS.row(CUDA, ComplexToInnerDim)
def lower_to_pairs(op: ComplexToInnerDim, site: Site) -> None:
    """A view."""
    (x,) = site.inputs()
    site.place(x.as_parts())
