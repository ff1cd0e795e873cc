"""Weights in blocks, as kernels read them: a few bits for each, and a scale for some neighbours along the summed axis.

They lie in panels of as many columns as a tile has, one panel after the other, and in each block by block along the
summed axis. A block begins with the scales of its columns, then come their offsets, if it has such, and then lines of
words, one for each column. A word of 32 bits has the codes of a few neighbours along the summed axis. Those of 4 bits
lie such that the low halves of its bytes are the first four of them, and the high halves the last four: bytes and
halves of bytes are taken out of it alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, I32, U32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel

WORD: Final = U32.bits

GROUP: Final = WORD // 8
"""How many bytes a word has."""

UNSIGNED: Final = 8
"""What makes codes of 4 bits with a sign such without, as it is added."""


@frozen
class BlockForm:
    """``bits``: of a code, 4 or 8; ``signed``: whether codes are integers with a sign. ``length``: codes of a block.

    ``scale``: the type of scales; ``offset``: of what is added to the product of code and scale, ``None`` for nothing.
    """

    bits: int
    signed: bool
    length: int
    scale: ElementType
    offset: ElementType | None = None

    @property
    def codes(self) -> int:
        """How many codes a word has."""
        return WORD // self.bits

    @property
    def head(self) -> int:
        """Bytes of the scale and the offset of a column."""
        return self.scale.bytes + (0 if self.offset is None else self.offset.bytes)

    @property
    def size(self) -> int:
        """Bytes of a block of a column."""
        return self.head + self.length * self.bits // 8

    def place(self, number: int) -> int:
        """The lowest bit in a word of the code with a number."""
        return 8 * (number % 4) + self.bits * (number // 4)

    @property
    def power(self) -> int:
        """Codes come out of words times two to the power of this: those with a sign lie at the upper end."""
        return WORD - self.bits if self.signed else 0

    def code(self, word: Value, number: int) -> Value:
        """The code with a number in a word, or in each of a vector of them, times two to the `power`: in 32 bits."""
        place = self.place(number)
        above = WORD - self.bits - place
        if self.signed:
            high = word << above if above else word
            code = high & (((1 << self.bits) - 1) << (WORD - self.bits)) if place else high
        else:
            low = word >> place if place else word
            code = low & ((1 << self.bits) - 1) if above else low
        return code.bits(I32)  # of which every processor makes f32 in one instruction


class BlockReader:
    """One panel of weights in blocks, from a block on, while it is read."""

    def __init__(self, k: Kernel, form: BlockForm, columns: int, lanes: int, memory: Buffer) -> None:
        """``columns``: of the panel, of which ``lanes`` are a vector. ``memory``: its bytes."""
        self._k, self._form, self._lanes = k, form, lanes
        self._columns, self._memory = columns, memory
        self._starts = range(0, columns, lanes)

    def plain_scales(self) -> list[Value]:
        """Of each vector of columns."""
        return self._part(0, self._form.scale)

    def scales(self) -> list[Value]:
        """Of each vector of columns, what codes as `codes` gives them are multiplied with."""
        scales = self.plain_scales()
        return [one * 2.0**-self._form.power for one in scales] if self._form.power else scales

    def offsets(self) -> list[Value]:
        """Of each vector of columns; only of forms that have such."""
        assert self._form.offset is not None  # the callers asked
        return self._part(self._columns * self._form.scale.bytes, self._form.offset)

    def words(self, number: Value | int) -> list[Value]:
        """The words with a number of a block, of each vector of columns."""
        lines = self._memory.at(self._columns * self._form.head).of(U32)
        return [lines.vector(self._k.index(number) * self._columns + one, self._lanes) for one in self._starts]

    def groups(self, number: Value) -> list[list[Value]]:
        """The codes of 4 bits in such words as bytes: first four of each column, then four. With `UNSIGNED` added."""
        words, low = self.words(number), int(GROUP * "0f", 16)
        if self._form.signed:
            words = [one ^ int(GROUP * "88", 16) for one in words]
        return [[((one >> place if place else one) & low).bits(I32) for one in words] for place in (0, 4)]

    def codes(self, words: Sequence[Value], number: int) -> list[Value]:
        """The codes with a number in some words, in f32, times two to the power of the form."""
        return [self._k.convert(self._form.code(word, number), F32) for word in words]

    def _part(self, start: int, element: ElementType) -> list[Value]:
        part = self._memory.at(start).of(element)
        return [self._k.convert(part.vector(one, self._lanes), F32) for one in self._starts]
