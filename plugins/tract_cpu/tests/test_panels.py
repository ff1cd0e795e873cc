"""Constant matrices as panels, piece by piece where they are large."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.lower import dots
from tract_cpu.lower.dots import in_panels

SHAPES = [(1, 5, 37), (3, 8, 16), (2, 33, 100), (1, 1, 3)]


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
@pytest.mark.parametrize("shape", SHAPES)
def test_pieces_of_a_matrix_give_the_same_panels(
    shape: tuple[int, ...], order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    laid = np.arange(np.prod(shape), dtype=np.float32).reshape([shape[axis] for axis in order])
    matrices = laid.transpose(np.argsort(order))
    count, depth, columns = shape
    panels = -(-columns // 16)
    wanted = np.zeros((count, depth, panels * 16), np.float32)
    wanted[:, :, :columns] = matrices
    wanted = wanted.reshape(count, depth, panels, 16).transpose(0, 2, 1, 3)
    for piece in (1, 1 << 10, 1 << 30):
        monkeypatch.setattr(dots, "_PIECE", piece)
        np.testing.assert_array_equal(in_panels(matrices, 16, None), wanted)
