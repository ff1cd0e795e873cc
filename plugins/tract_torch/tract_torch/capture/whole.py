"""Operators of our own for functions of PyTorch that fix the sizes that they meet, or fall apart, when exported.

They compute what the functions do, are exported whole, and say their shapes without looking at sizes. The rows of
PyTorch's own operators wire them: arguments have the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


@torch.library.custom_op("tract_torch::affine_grid_generator", mutates_args=())
def affine_grid_generator(theta: torch.Tensor, size: Sequence[int], align_corners: bool) -> torch.Tensor:
    """`torch.nn.functional.affine_grid`."""
    return torch.affine_grid_generator(theta, list(size), align_corners)


@affine_grid_generator.register_fake
def _(theta: torch.Tensor, size: Sequence[int], align_corners: bool) -> torch.Tensor:
    return theta.new_empty((theta.shape[0], *size[2:], len(size) - 2))


@torch.library.custom_op("tract_torch::stft", mutates_args=())
def stft(
    self: torch.Tensor, n_fft: int, hop_length: int, window: torch.Tensor | None, *, normalized: bool, onesided: bool
) -> torch.Tensor:
    """`torch.stft` of a signal (batch, time) with what is to be around it."""
    found = torch.stft(
        self,
        n_fft,
        hop_length,
        None if window is None else window.shape[0],
        window,
        center=False,
        normalized=normalized,
        onesided=onesided,
        return_complex=True,
    )
    return found.contiguous()


@stft.register_fake
def _(
    self: torch.Tensor, n_fft: int, hop_length: int, window: torch.Tensor | None, *, normalized: bool, onesided: bool
) -> torch.Tensor:
    frames = (self.shape[-1] - n_fft) // hop_length + 1
    kind = self.dtype if self.dtype.is_complex else self.dtype.to_complex()
    return self.new_empty((*self.shape[:-1], n_fft // 2 + 1 if onesided else n_fft, frames), dtype=kind)


@torch.library.custom_op("tract_torch::istft", mutates_args=())
def istft(
    self: torch.Tensor,
    n_fft: int,
    hop_length: int,
    window: torch.Tensor | None,
    *,
    center: bool,
    normalized: bool,
    onesided: bool,
    length: int | None,
) -> torch.Tensor:
    """`torch.istft` of the frequencies of frames (batch, frequencies, frames)."""
    return torch.istft(
        self,
        n_fft,
        hop_length,
        None if window is None else window.shape[0],
        window,
        center=center,
        normalized=normalized,
        onesided=onesided,
        length=length,
    ).contiguous()


@istft.register_fake
def _(
    self: torch.Tensor,
    n_fft: int,
    hop_length: int,
    window: torch.Tensor | None,
    *,
    center: bool,
    normalized: bool,
    onesided: bool,
    length: int | None,
) -> torch.Tensor:
    around = 2 * (n_fft // 2) if center else 0
    size = n_fft + hop_length * (self.shape[-1] - 1) - around if length is None else length
    return self.new_empty((*self.shape[:-2], size), dtype=self.dtype.to_real())
