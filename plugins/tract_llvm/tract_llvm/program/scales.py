"""Tensors beside the scales and zero points that go with them: one for all elements, along one axis, or for blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tract_core.dims import Dim
    from tract_llvm.program.views import View

_PARAMETERS: Final = {1, 2}
"""Which tensors are scale and zero point."""


def by_blocks(tensors: Sequence[View], axis: int, block: int) -> Iterator[tuple[View, ...]]:
    """Tensors of which the second and the third have one position of an axis for every block of the others, in parts.

    Blocks and the positions in them are two axes: of all blocks that are whole, then of what is left.
    """
    size = tensors[-1].shape[axis]
    whole, rest = size // block, size % block
    for first, count, length in [(0, whole, block), (whole, 1, rest)][: 1 if rest == 0 else 2]:
        yield tuple(
            _split(view.part(axis, first, count), axis, length, 0)
            if slot in _PARAMETERS
            else _split(view.part(axis, first * block, count), axis, length, block)
            for slot, view in enumerate(tensors)
        )


def along_axis(view: View, axis: int, shape: tuple[Dim, ...]) -> View:
    """One number for all elements, or one per position of an axis, stretched to a shape."""
    if not view.shape:
        return view.stretched(shape)
    behind = len(shape) - 1 - axis
    placed = replace(view, shape=(*view.shape, *[1] * behind), strides=(*view.strides, *[0] * behind))
    return placed.stretched(shape)


def _split(view: View, axis: int, length: Dim, apart: int) -> View:
    """Every position of an axis is the first of so many, which the next axis has.

    The next position is so many ``apart`` in the tensor, 0 where all of them are the same one.
    """
    stride = view.strides[axis]
    strides = (stride * apart, stride) if apart else (stride, 0)
    return replace(
        view,
        shape=(*view.shape[: axis + 1], length, *view.shape[axis + 1 :]),
        strides=(*view.strides[:axis], *strides, *view.strides[axis + 1 :]),
    )
