"""Loops over tensors that are looked at together, as few and as long as can be. Nothing is emitted here."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen


@frozen
class StridedLoop:
    """One loop of ``size`` rounds. ``strides``: for each tensor, how far apart its elements are in two rounds."""

    size: Dim
    strides: tuple[Dim, ...]


def collapsed(sizes: Sequence[Dim], strides: Sequence[Sequence[Dim]]) -> list[StridedLoop]:
    """The loops over some axes, the outermost first: axes of size 1 are left out, and neighbours become one.

    ``strides``: one list for each tensor. Two axes become one where every tensor goes on after a round of the inner
    one as if it were longer.
    """
    loops: list[StridedLoop] = []
    for axis, size in enumerate(sizes):
        if is_one(size):
            continue
        loop = StridedLoop(size, tuple(one[axis] for one in strides))
        if loops and _goes_on(loops[-1], loop):
            loop = StridedLoop(loops.pop().size * size, loop.strides)
        loops.append(loop)
    return loops


def _goes_on(outer: StridedLoop, inner: StridedLoop) -> bool:
    return all(far == near * inner.size for far, near in zip(outer.strides, inner.strides, strict=True))
