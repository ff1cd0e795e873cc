"""Fourier transforms of PyTorch in the catalogue."""

from __future__ import annotations

from typing import Any

import torch

from catalogue.entry import Entry


def fft(name: str, *given: Any, shape: str = "", case: str = "", **options: Any) -> Entry:
    """A transform by its name."""
    is_real = name in ("fft_rfft", "fft_rfft2", "fft_rfftn", "fft_ihfft", "fft_fft")
    function = getattr(torch.fft, name.removeprefix("fft_"))
    shape = shape or ("2,S,6,f32" if is_real else "2,S,6,c64")
    return Entry(
        name + (f", {case}" if case else ""), lambda x: function(x, *given, **options), (shape,), tolerance=3e-5
    )


HANN = torch.hann_window(8)


def stft(name: str, shape: str = "2,S,4,f32", **options: Any) -> Entry:
    """A signal, of which four samples are on an axis of their own."""

    def call(x: torch.Tensor) -> Any:
        return torch.stft(x.flatten(-2), **options, return_complex=True)

    return Entry(name, call, (shape,), tolerance=3e-5)


def istft(name: str, shape: str, **options: Any) -> Entry:
    return Entry(name, lambda x: torch.istft(x, **options), (shape,), tolerance=3e-5, sizes=(5, 9))


ENTRIES = [
    fft("fft_fft"),
    fft("fft_fft", shape="2,S,5,c64", case="complex, odd"),
    fft("fft_fft", 8, 2, "ortho", case="longer"),
    fft("fft_fft", shape="2,S,5,f64", case="f64"),
    fft("fft_fft", shape="S,5,i64", case="integers"),
    fft("fft_ifft"),
    fft("fft_ifft", 4, norm="forward", case="shorter"),
    fft("fft_rfft"),
    fft("fft_rfft", dim=1, norm="ortho", case="a dynamic axis"),
    fft("fft_rfft", n=9, norm="forward", case="longer"),
    fft("fft_irfft"),
    fft("fft_irfft", 7, norm="ortho", case="odd"),
    fft("fft_irfft", 5, norm="forward", case="shorter"),
    fft("fft_fft2", dim=(0, 2)),
    fft("fft_ifft2", dim=(0, 2), norm="ortho"),
    fft("fft_fftn", norm="forward"),
    fft("fft_ifftn", s=(5,), dim=(2,)),
    fft("fft_rfft2", dim=(0, 2)),
    fft("fft_rfftn", norm="ortho"),
    fft("fft_irfft2", dim=(0, 2)),
    fft("fft_irfftn", s=(2, 8), dim=(0, 2), norm="ortho"),
    fft("fft_hfft"),
    fft("fft_hfft", 9, norm="ortho", case="odd"),
    fft("fft_ihfft"),
    Entry("fft_fftshift", lambda x: (torch.fft.fftshift(x), torch.fft.ifftshift(x, 1)), ("2,S,5,f32",)),
    Entry("fft_fftfreq", lambda x: (x + torch.fft.fftfreq(3, 0.5), torch.fft.rfftfreq(8)), ("S,3,f32",)),
    Entry("rfft and irfft", lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2j, n=6), ("S,6,f32",), tolerance=3e-5),
    stft("stft", n_fft=8, hop_length=3, window=HANN),
    stft("stft, default window", n_fft=8),
    stft("stft, not centred, all frequencies", n_fft=8, center=False, onesided=False, normalized=True, window=HANN),
    stft("stft, short window", n_fft=12, win_length=8, window=HANN, pad_mode="constant"),
    stft("stft, one signal", "S,4,f32", n_fft=8, window=HANN),
    stft("stft, f64", "2,S,4,f64", n_fft=8, window=HANN.double()),
    Entry(
        "stft, window that is computed",
        lambda x, w: torch.stft(x.flatten(1), 8, window=w.softmax(0), return_complex=True).abs(),
        ("2,S,4,f32", "8,f32"),
        tolerance=3e-5,
    ),
    Entry(
        "stft, window that is made",
        lambda x: x.flatten(1).stft(8, window=torch.hann_window(8), return_complex=True).real,
        ("2,S,4,f32",),
        tolerance=3e-5,
    ),
    istft("istft", "2,5,S,c64", n_fft=8, hop_length=2, window=HANN),
    istft("istft, default window", "2,5,S,c64", n_fft=8),
    istft("istft, one signal", "5,S,c64", n_fft=8, window=HANN),
    istft("istft, all frequencies", "2,8,S,c64", n_fft=8, onesided=False, normalized=True, window=HANN),
    istft("istft, length", "2,5,S,c64", n_fft=8, hop_length=2, window=HANN, length=7),
    istft("istft, longer", "2,5,6,c64", n_fft=8, hop_length=2, window=HANN, length=19),
    istft("istft, not centred", "2,5,S,c64", n_fft=8, hop_length=2, window=HANN + 0.1, center=False),
    istft("istft, short window", "2,7,S,c64", n_fft=12, hop_length=2, win_length=8, window=HANN),
]
