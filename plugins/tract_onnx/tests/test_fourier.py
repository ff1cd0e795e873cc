"""Fourier transforms, windows and mel bands, against NumPy in f64 and ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_agree import agrees, gives, is_refused
from onnx_check import assert_close, load, run, single

from tract_core.errors import FactError, RunError
from tract_core.runtime.plan import TypedSimplePlan

RANDOM = np.random.default_rng(0)


def f32(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def pairs(x):
    return np.stack([x.real, x.imag], axis=-1).astype(np.float32)


def numbers(x):
    x = x.astype(np.float64)
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


@pytest.mark.parametrize("length", [None, 5, 8, 11])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_dft(length, parts, inverse, axis):
    x = f32(7, 8, parts)
    transform = np.fft.ifft if inverse else np.fft.fft
    wanted = [pairs(transform(numbers(x), n=length, axis=axis))]
    given = None if length is None else np.array(length, np.int64)
    for fixed in ((1,), ()):
        how = {"inverse": inverse, "symbolic": False, "fixed": fixed if length else ()}
        gives(wanted, "DFT", [x, given], opset=17, axis=axis, **how)
        axis_too = {**how, "fixed": (*how["fixed"], 2)}
        gives(wanted, "DFT", [x, given, np.array(axis - 3, np.int64)], opset=20, **axis_too)


@pytest.mark.parametrize("length", [None, 5, 6, 12])
def test_half_of_the_frequencies_and_back(length):
    x, spectrum = f32(3, 8, 1), f32(3, 5, 2)
    given = None if length is None else np.array(length, np.int64)
    half = pairs(np.fft.rfft(numbers(x), n=length, axis=1))
    back = np.fft.irfft(numbers(spectrum), n=length, axis=1)[..., None].astype(np.float32)
    for fixed in ((1,), ()) if length else ((),):
        how = {"opset": 20, "fixed": fixed, "onesided": 1, "symbolic": False}
        gives([half], "DFT", [x, given], **how)
        gives([back], "DFT", [spectrum, given], inverse=1, **how)


def test_a_signal_of_symbolic_length():
    model, _ = single("DFT", [f32(2, 8, 1), np.array(10, np.int64)], opset=20, fixed=(1,), onesided=1)
    for axis, name in enumerate(("B", "N")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    typed = load(model).into_typed()
    assert str(typed.outlet_fact(typed.outputs[0])) == "B,6,2,f32"
    for size in (8, 13):
        x = f32(3, size, 1)
        wanted = pairs(np.fft.rfft(numbers(x), n=10, axis=1))
        assert_close(TypedSimplePlan(typed).run([x]), [wanted], 1e-6)


def test_half_of_the_frequencies_of_complex_numbers():
    is_refused(FactError, "onesided=1 transforms real numbers", "DFT", [f32(3, 8, 2)], opset=20, onesided=1)


def test_the_axis_of_the_parts():
    is_refused(FactError, "along the last axis", "DFT", [f32(3, 8, 2)], opset=17, axis=-1)


def test_numbers_of_three_parts():
    is_refused(FactError, "a last axis of size 1 or 2", "DFT", [f32(3, 8, 3)], opset=17)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [None, np.hanning(6).astype(np.float32)], ids=["plain", "window"])
def test_stft(onesided, window):
    signal = f32(2, 21, 1)
    frames = np.stack([numbers(signal)[:, start : start + 6] for start in range(0, 16, 4)], axis=1)
    frames = frames if window is None else frames * window
    wanted = [pairs((np.fft.rfft if onesided else np.fft.fft)(frames, axis=-1))]
    inputs = [signal, np.array(4, np.int64), window, np.array(6, np.int64)]
    for fixed in ((1, 2, 3), (1, 3), (2,), ()):
        constants = [slot for slot in fixed if inputs[slot] is not None]
        gives(wanted, "STFT", inputs, fixed=constants, onesided=onesided, symbolic=False)


@pytest.mark.parametrize("onesided", [0, 1])
def test_a_real_signal_may_come_without_an_axis_for_its_parts(onesided):
    """ONNX Runtime takes it so, and exporters write it."""
    signal = f32(2, 21)
    frames = np.stack([signal[:, start : start + 6].astype(np.float64) for start in range(0, 16, 4)], axis=1)
    wanted = [pairs((np.fft.rfft if onesided else np.fft.fft)(frames, axis=-1))]
    inputs = [signal, np.array(4, np.int64), np.ones(6, np.float32)]
    for fixed in ((1, 2), ()):
        gives(wanted, "STFT", inputs, fixed=fixed, onesided=onesided, symbolic=False)
    is_refused(FactError, r"wants a signal of shape \[batch, length, 1 or 2\]", "STFT", [f32(21), inputs[1]])


def test_a_piece_as_long_as_the_signal():
    x = f32(2, 10, 1)
    wanted = pairs(np.fft.rfft(numbers(x), axis=1))[:, None]
    model, given = single("STFT", [x, np.array(4, np.int64)], fixed=(1,))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "N"
    assert_close(run(model, given), [wanted], 1e-6)


def test_pieces_of_complex_numbers_have_no_half():
    is_refused(FactError, "onesided=1 transforms real numbers", "STFT", [f32(2, 10, 2), np.array(4, np.int64)])


@pytest.mark.parametrize("window", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(window, periodic):
    for fixed in ((0,), ()):
        agrees(window, [np.array(10, np.int64)], fixed=fixed, periodic=periodic)


def test_mel_bands():
    sizes = [np.array(value, np.int64) for value in (8, 64, 8000)]
    edges = [np.array(value, np.float32) for value in (20, 3900)]
    for fixed in ((0, 1, 2, 3, 4), ()):
        agrees("MelWeightMatrix", [*sizes, *edges], fixed=fixed)


def test_mel_bands_beyond_the_frequencies():
    sizes = [np.array(value, np.int64) for value in (8, 64, 8000)]
    model, given = single("MelWeightMatrix", [*sizes, np.array(0, np.float32), np.array(9000, np.float32)])
    with pytest.raises(RunError, match=r"8 bands .* do not fit the 33 frequencies"):
        run(model, given)
