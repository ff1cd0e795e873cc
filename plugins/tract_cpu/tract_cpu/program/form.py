"""Tensors whose channels lie in blocks of as many as a vector has lanes: what convolutions read and write.

Such a tensor is a view with one more axis. Where the channels were, there are blocks of them; the last axis has the
channels of one block. Channels that the last block lacks have room too, but what stands there is never read. Around its
spatial axes may lie a border of zeros, which the windows of a convolution read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array

Border = tuple[tuple[Dim, Dim], ...]
"""How many zeros lie before and after the elements, along each axis of a view."""


@frozen
class Form:
    """How the channels of a tensor are cut. ``axis``: where they are; ``channels``: how many; ``block``: of a block."""

    axis: int
    channels: int
    block: int

    def __str__(self) -> str:
        return f"blocks of {self.block} of the {self.channels} channels at axis {self.axis}"

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.channels // self.block)

    def shape(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape of the view."""
        return (*shape[: self.axis], self.blocks, *shape[self.axis + 1 :], self.block)

    def cut(self, plain: View, first: int, count: Dim, lanes: int) -> View:
        """Some blocks of a view whose channels are not cut, as if they were."""
        step = plain.strides[self.axis]
        shape = (*plain.shape[: self.axis], count, *plain.shape[self.axis + 1 :], lanes)
        strides = (*plain.strides[: self.axis], step * self.block, *plain.strides[self.axis + 1 :], step)
        return replace(plain, shape=shape, strides=strides, offset=plain.offset + step * (first * self.block))

    def lies_plain(self, rank: int) -> bool:
        """Whether a plain tensor of so many axes lies in memory like one in blocks: channels last, in whole blocks."""
        return self.axis + 1 == rank and self.channels % self.block == 0

    def as_it_is(self, plain: View) -> View | None:
        """A plain tensor as if it were in blocks, where channels lie in memory like that."""
        fits = plain.strides[-1] == 1 and self.lies_plain(len(plain.shape))
        return self.cut(plain, 0, self.blocks, self.block) if fits else None

    def parts(self, blocked: View, plain: View) -> list[tuple[View, View]]:
        """The same elements in both: those of whole blocks, and those of the last one where it is not whole."""
        whole, rest = divmod(self.channels, self.block)
        cuts = [(0, whole, self.block), (whole, 1, rest)]
        return [(self._some(blocked, *cut), self.cut(plain, *cut)) for cut in cuts if cut[1] and cut[2]]

    def plain_array(self, blocked: Array) -> Array:
        """An array in blocks, copied into one whose channels are not cut."""
        side_by_side = np.moveaxis(blocked, -1, self.axis + 1)
        shape = (*blocked.shape[: self.axis], self.blocks * self.block, *blocked.shape[self.axis + 1 : -1])
        return side_by_side.reshape(shape).take(range(self.channels), self.axis)

    def blocked_array(self, plain: Array) -> Array:
        """The opposite, with zeros for the channels that the last block lacks."""
        missing = self.blocks * self.block - self.channels
        wide = np.pad(plain, [(0, missing if axis == self.axis else 0) for axis in range(plain.ndim)])
        shape = (*plain.shape[: self.axis], self.blocks, self.block, *plain.shape[self.axis + 1 :])
        return np.moveaxis(wide.reshape(shape), self.axis + 1, -1)

    def _some(self, blocked: View, first: int, count: int, lanes: int) -> View:
        shape = (*blocked.shape[: self.axis], count, *blocked.shape[self.axis + 1 : -1], lanes)
        return replace(blocked, shape=shape, offset=blocked.offset + blocked.strides[self.axis] * first)


@frozen
class Blocked:
    """A tensor in blocks, and the zeros around it."""

    form: Form
    view: View
    border: Border


@frozen
class Forms:
    """Those of tensors that are put together along the channels, in blocks.

    ``parts``: of each; ``whole``: of all together. ``firsts``: the numbers of their first blocks in the whole.
    """

    parts: tuple[Form, ...]
    whole: Form
    firsts: tuple[int, ...]

    @staticmethod
    def of(parts: Sequence[Form]) -> Forms:
        """Of these parts, all but the last of which are made of whole blocks."""
        whole = replace(parts[0], channels=sum(form.channels for form in parts))
        return Forms(tuple(parts), whole, tuple(accumulate((form.blocks for form in parts), initial=0)))

    def part_of(self, whole: Blocked, slot: int) -> View:
        """Where an input lies in the whole."""
        return whole.view.part(whole.form.axis, self.firsts[slot], self.parts[slot].blocks)
