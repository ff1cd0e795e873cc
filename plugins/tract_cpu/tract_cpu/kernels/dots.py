"""Products that are summed by neighbours: groups of elements along the summed axis, each a number of 32 bits.

An instruction sums the products of bytes, of 16-bit integers or of bf16, and wants factors of certain signs. Where the
left ones have the other sign, their first bit is turned over: that adds half of their range, or takes it away. It
changes a sum by that half times the sum of the right factors. So sums start there, and are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from tract_llvm.isa import Dot, Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import BF16, I16, I32, U16, ElementType, element_named
from tract_llvm.language.values import Value

from tract_core.frozen import frozen

GROUPED: Final = I32
"""The type of a group."""


@frozen
class DotGrouping:
    """``dot``: the instruction. ``flips``: whether left factors have the other sign than it takes."""

    dot: Dot
    flips: bool = False

    @property
    def left(self) -> ElementType:
        """The type of left factors, as the instruction takes them."""
        return element_named(self.dot.left)

    @property
    def right(self) -> ElementType:
        """The type of right factors."""
        return element_named(self.dot.right)

    @property
    def size(self) -> int:
        """How many neighbours a group has."""
        return self.dot.group

    @property
    def half(self) -> int:
        """How much must be added to a sum for each right factor that flipped ones were multiplied with, times that."""
        half = 1 << (self.left.bits - 1)
        return half if self.left.kind == "i" else -half

    def joined(self, neighbours: Sequence[Value]) -> Value:
        """The group of some neighbours, the first one lowest, given as integers of 32 bits."""
        bits = self.left.bits
        return reduce(
            lambda low, high: low | high,
            ((one & ((1 << bits) - 1)) << (bits * place) for place, one in enumerate(neighbours)),
        )

    def flipped(self, group: Value) -> Value:
        """A group of left factors, as the instruction takes them."""
        if not self.flips:
            return group
        bits = self.left.bits
        return group ^ (sum(1 << (bits * place + bits - 1) for place in range(self.size)) - (1 << 32))


def as_integers(memory: Buffer) -> Buffer:
    """The same elements, bf16 as their bits."""
    return memory.of(stored(memory.element))


def stored(element: ElementType) -> ElementType:
    """The integers that elements are taken for."""
    return U16 if element is BF16 else element


def pairs_for(isa: Isa, left: ElementType, right: ElementType, sums: ElementType) -> Dot | None:
    """The instruction that multiplies and adds pairs of 16-bit integers, where such factors surely fit these."""
    narrow = all(one.kind in "iu" and one.bits + (one.kind == "u") <= I16.bits for one in (left, right))
    found = (one for one in isa.dots if (one.left, one.right, one.sums) == (I16.name, I16.name, sums.name))
    return next(found, None) if narrow else None
