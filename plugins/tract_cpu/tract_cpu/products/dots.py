"""Factors of sums of products as kernels read them: in panels, and in groups of neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from tract_llvm.language.types import BF16, ElementType, numpy_type

from tract_core.data.stored import let_go
from tract_core.plugins.keys import Array
from tract_cpu.aligned import lasting
from tract_cpu.kernels.dots import DotGrouping, stored

_PIECE: Final = 4 << 20
"""Bytes that are packed at once, at the most, where more lie apart."""


def in_panels(matrices: Array, panel: tuple[int, int], grouping: DotGrouping | None, element: ElementType) -> Array:
    """Matrices [count, depth, columns] as panels [count, panels, lines, width], zeros where any are missing.

    ``panel``: lines and width; ``element``: the type of the numbers in panels. With ``grouping``, each is a group of
    neighbours along the depth, behind whose end there are zeros, in 32 bits. What sums start at is a line before them,
    where that is not zero.
    """
    (count, _, columns), (lines, width) = matrices.shape, panel
    runs = -(-columns // width)
    if grouping is None:
        packed = lasting((count, runs, lines, width), numpy_type(element))
        for piece, panels in _pieces(matrices, packed, cuts_depth=True):
            _lay(panels, piece)
            let_go(piece)
        return packed
    size, first = grouping.size, int(grouping.flips)
    packed = lasting((count, runs, lines, width), np.int32)
    for piece, panels in _pieces(matrices, packed, cuts_depth=False):
        elements = as_stored(piece, grouping.right)
        groups = panels.view(numpy_type(stored(grouping.right))).reshape(*panels.shape, size)[:, :, first:]
        for place in range(size):
            _lay(groups[..., place], elements[:, place::size])
        if grouping.flips:
            start = piece.sum(axis=1, dtype=np.int64, keepdims=True) * grouping.half
            _lay(panels, start.astype(np.int32))
        let_go(piece)
    return packed


def _pieces(matrices: Array, packed: Array, *, cuts_depth: bool) -> Iterator[tuple[Array, Array]]:
    """Parts of matrices [count, depth, columns] that lie apart, with their panels: a few megabytes at once.

    ``cuts_depth``: whether lines of the panels are those of the matrices, so that parts may have some of them.
    """
    sizes, width = matrices.shape, packed.shape[3]
    axis = max(range(3), key=lambda one: (abs(matrices.strides[one]) if sizes[one] > 1 else 0, -one))
    unit = width if axis == 2 else 1  # panels stay whole
    half = sizes[axis] // 2 // unit * unit
    if matrices.nbytes <= _PIECE or not half or (axis == 1 and not cuts_depth):
        yield matrices, packed
        return
    into, at = (0, 2, 1)[axis], half // unit
    for mine, theirs in ((slice(half), slice(at)), (slice(half, None), slice(at, None))):
        part, panels = matrices[(slice(None),) * axis + (mine,)], packed[(slice(None),) * into + (theirs,)]
        yield from _pieces(part, panels, cuts_depth=cuts_depth)


def _lay(packed: Array, matrices: Array) -> None:
    """Matrices [count, lines, columns] into the first lines of panels."""
    (count, lines, columns), width = matrices.shape, packed.shape[3]
    whole, rest = divmod(columns, width)
    cut = matrices[:, :, : whole * width].reshape(count, lines, whole, width)
    packed[:, :whole, :lines] = cut.transpose(0, 2, 1, 3)
    if rest:
        packed[:, whole, :lines, :rest] = matrices[:, :, whole * width :]


def as_stored(array: Array, element: ElementType) -> Array:
    """The same numbers; of bf16, the bits."""
    return array.view(np.uint16) if element is BF16 else array


def of_narrow(array: Array, element: ElementType) -> Array:
    """Right factors in the type that instructions take, bf16 as its bits."""
    found: Array = array.view(np.uint16) if element is BF16 else array.astype(numpy_type(element))
    return found
