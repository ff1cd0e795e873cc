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
