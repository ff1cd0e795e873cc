"""Constant matrices as panels, piece by piece where they are large."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.products import dots
from tract_cpu.products.dots import in_panels
from tract_llvm.isa import Dot
from tract_llvm.language.types import F32, I32

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
        np.testing.assert_array_equal(in_panels(matrices, (depth, 16), None, F32), wanted)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3, 9])
def test_pieces_of_a_matrix_in_groups_give_the_same_panels(
    depth: int, flips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouping = DotGrouping(Dot("x86.avx512.vpdpbusd.512", 4, "u8", "i8", "i32"), flips)
    for laid in (np.arange(2 * depth * 70), np.arange(70 * depth * 2).reshape(70, depth, 2).transpose(2, 1, 0)):
        matrices = (laid % 251 - 125).astype(np.int8).reshape(2, depth, 70)
        panels = np.zeros((2, 5, -(-depth // 4), 16, 4), np.int8)
        for line in range(depth):
            padded = np.pad(matrices[:, line], ((0, 0), (0, 10)))
            panels[:, :, line // 4, :, line % 4] = padded.reshape(2, 5, 16)
        wanted = panels.view(np.int32)[..., 0]
        if flips:
            start = np.pad(matrices.sum(1, dtype=np.int32), ((0, 0), (0, 10))).reshape(2, 5, 1, 16)
            wanted = np.concatenate([start * grouping.half, wanted], axis=2)
        lines = wanted.shape[2]
        for piece in (1, 1 << 30):
            monkeypatch.setattr(dots, "_PIECE", piece)
            np.testing.assert_array_equal(in_panels(matrices, (lines, 16), grouping, I32), wanted)
            longer = in_panels(matrices, (lines + 3, 16), grouping, I32)
            np.testing.assert_array_equal(longer[:, :, :lines], wanted)
            assert not longer[:, :, lines:].any()
