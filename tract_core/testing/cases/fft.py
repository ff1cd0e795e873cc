"""Cases of Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex, Stft
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case
from tract_core.testing.tolerance import Tolerance

ROWS = Rows()

_SIZES = {"B": 2, "S": 6, "T": 11}


def _dft(x: Any, axis: int, sign: int = -1) -> Any:
    """The transform by its definition, as a product with the matrix of all waves; pairs in, pairs out."""
    values = np.moveaxis(x[..., 0] + 1j * x[..., 1], axis, -1)
    size = values.shape[-1]
    places = np.arange(size)
    waves = np.exp(sign * 2j * np.pi * np.outer(places, places) / size)
    found = np.moveaxis(values @ waves, -1, axis)
    return np.stack([found.real, found.imag], axis=-1)


def _stft(axis: int, frame: int, stride: int, window: Any = None) -> Any:
    def expected(x: Any) -> Any:
        signal = np.moveaxis(x, axis, 0)
        frames: list[Any] = []
        for start in range(0, signal.shape[0] - frame + 1, stride):
            piece = signal[start : start + frame]
            if window is not None:
                weights = np.zeros(frame)
                before = (frame - len(window)) // 2
                weights[before : before + len(window)] = window
                piece = piece * weights.reshape([-1] + [1] * (piece.ndim - 1))
            frames.append(_dft(piece, 0))
        return np.moveaxis(np.stack(frames), (0, 1), (axis, axis + 1))

    return expected


_HANN = np.array([0.1, 0.6, 1.0, 0.6], np.float32)

_CASES = [
    Case("Fft-0-S,2,f32", Fft(0), ["S,2,f32"], lambda x: _dft(x, 0), _SIZES),
    Case("Fft-1-B,S,3,2,f32", Fft(1), ["B,S,3,2,f32"], lambda x: _dft(x, 1), _SIZES),
    Case("Fft-1-B,5,2,f64", Fft(1), ["B,5,2,f64"], lambda x: _dft(x, 1), _SIZES),
    Case("Fft-0-S,2,f16", Fft(0), ["S,2,f16"], lambda x: _dft(x, 0), _SIZES, Tolerance(1e-2, 2e-3)),
    Case("Fft-inverse", Fft(1, inverse=True), ["B,S,2,f32"], lambda x: _dft(x, 1, 1), _SIZES),
    Case(
        "Fft-one wave",
        Fft(0),
        [Arg("4,2,f32", [1, 0, 0, 1, -1, 0, 0, -1])],
        lambda _: np.array([[0, 0], [4, 0]] + [[0, 0]] * 2),
    ),
    Case("Stft-plain", Stft(1, 4, 3), ["B,T,2,f32"], _stft(1, 4, 3), _SIZES),
    Case("Stft-one frame", Stft(0, 4, 1), ["4,2,f32"], _stft(0, 4, 1), _SIZES),
    Case("Stft-window", Stft(1, 4, 2, Constant(_HANN)), ["B,T,2,f32"], _stft(1, 4, 2, _HANN), _SIZES),
    Case("Stft-short window", Stft(1, 7, 2, Constant(_HANN)), ["B,T,2,f32"], _stft(1, 7, 2, _HANN), _SIZES),
    Case("Stft-inner axes", Stft(0, 4, 2, Constant(_HANN)), ["T,3,2,f32"], _stft(0, 4, 2, _HANN), _SIZES),
    Case("InnerDimToComplex", InnerDimToComplex(), ["B,S,2,f32"], lambda x: x[..., 0] + 1j * x[..., 1], _SIZES),
    Case(
        "ComplexToInnerDim", ComplexToInnerDim(), ["B,S,complex_f32"], lambda x: np.stack([x.real, x.imag], 2), _SIZES
    ),
    Case("ComplexToInnerDim-f64", ComplexToInnerDim(), ["complex_f64"], lambda x: np.stack([x.real, x.imag], 0)),
]

ROWS.add(CASES, "fft", _CASES)
