"""Fourier transforms of pairs of real and imaginary parts."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import numpy as np

from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex, Stft
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.layout import along
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


def _to_complex(x: mx.array) -> mx.array:
    return mx.view(mx.contiguous(wide(x)), mx.complex64)[..., 0]


def _to_pairs(x: mx.array, kind: mx.Dtype) -> mx.array:
    return mx.stack([mx.real(x), mx.imag(x)], axis=-1).astype(kind)


@ROWS.row(METAL, Fft)
def lower_fft(op: Fft, site: Site) -> Callable[[mx.array], mx.array]:
    """Without MLX's normalisation."""

    def transformed(x: mx.array) -> mx.array:
        if x.size == 0:
            return x
        values = _to_complex(x)
        found = mx.fft.ifft(values, axis=op.axis) * x.shape[op.axis] if op.inverse else mx.fft.fft(values, axis=op.axis)
        return _to_pairs(found, x.dtype)

    return transformed


@ROWS.row(METAL, Stft)
def lower_stft(op: Stft, site: Site) -> Callable[[mx.array], mx.array]:
    """Frames, times the window, each transformed."""
    return lambda x: _short_time(op, x)


def _short_time(op: Stft, x: mx.array) -> mx.array:
    count = (x.shape[op.axis] - op.frame) // op.stride + 1
    if x.size == 0:
        return mx.zeros((*x.shape[: op.axis], count, op.frame, *x.shape[op.axis + 1 :]), x.dtype)
    places = np.arange(count)[:, None] * op.stride + np.arange(op.frame)
    frames = mx.take(_to_complex(x), mx.array(places), axis=op.axis)
    if op.window is not None:
        before = (op.frame - op.window.array.size) // 2
        window = np.zeros(op.frame, "f4")
        window[before : before + op.window.array.size] = op.window.array.astype("f4")
        frames = frames * along(mx.array(window), op.axis + 1, frames.ndim)
    return _to_pairs(mx.fft.fft(frames, axis=op.axis + 1), x.dtype)


@ROWS.row(METAL, InnerDimToComplex)
def lower_to_complex(op: InnerDimToComplex, site: Site) -> Callable[[mx.array], mx.array]:
    """The same bits."""
    return _to_complex


@ROWS.row(METAL, ComplexToInnerDim)
def lower_to_pairs(op: ComplexToInnerDim, site: Site) -> Callable[[mx.array], mx.array]:
    """The two parts, side by side."""
    return lambda x: _to_pairs(x, mx.float32)
