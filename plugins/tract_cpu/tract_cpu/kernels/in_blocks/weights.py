"""Weights in blocks, as kernels read them: a few bits for each, and a scale for some neighbours along the summed axis.

They lie in panels of as many columns as a tile has, one panel after the other, and in each block by block along the
summed axis. A block begins with the scales of its columns, then come their offsets, if it has such, and then lines of
words, one for each column. Where scales are integers, some blocks together have scales of these, which come before.

A word of 32 bits has some bits of a few neighbours along the summed axis. Its bytes have those of the first four
neighbours, from the lowest bits on, then those of the next four, and so on: so bytes come out of it as easily as single
codes. Codes of five or six bits are in two planes: words with four bits of each, and words with the rest.

Codes of four bits may stand for integers of eight, which a few operations make of four of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, I32, U8, U32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.caches import CACHE_LINE
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.sums import Tile

WORD: Final = U32.bits

GROUP: Final = WORD // 8
"""How many bytes a word has."""

PLANES: Final[Mapping[int, tuple[int, ...]]] = {2: (2,), 4: (4,), 5: (4, 1), 6: (4, 2), 8: (8,)}
"""By the bits of a code, how many of them are in each plane, from the lowest on."""


@frozen
class BlockForm:
    """``bits``: of a code; ``centre``: the code that stands for 0. ``length``: codes of a block.

    ``scale``: the type of scales; ``offset``: of what is added to the product of code and scale, ``None`` for nothing.
    ``over``: how many blocks have a scale in common, of type ``top``, which theirs are multiplied with, and offsets
    likewise; 1 for none. The depth is whole blocks, and so many of them.

    Codes of one plane whose centre is the middle are kept as integers with a sign. ``floats``: whether codes are not
    integers, but finite floats of 8 bits of the type e4m3fn; the centre is 0 then.
    ``spread``: whether codes of 4 bits stand for integers of 8, as `_spread` makes them; the centre is one of these.
    """

    bits: int
    centre: int
    length: int
    scale: ElementType
    offset: ElementType | None = None
    over: int = 1
    top: ElementType = F32
    floats: bool = False
    spread: bool = False

    @property
    def signed(self) -> bool:
        """Whether codes are kept with a sign."""
        return len(self.planes) == 1 and self.centre == 1 << (self.bits - 1)

    @property
    def planes(self) -> tuple[int, ...]:
        """How many bits each plane has."""
        return PLANES[self.bits]

    @property
    def unit(self) -> int:
        """How many codes fill words of all planes."""
        return WORD // min(self.planes)

    @property
    def lines(self) -> int:
        """How many words of a column such codes have."""
        return self.unit * self.bits // WORD

    @property
    def heads(self) -> int:
        """How many numbers a block of a column has: a scale, and perhaps an offset."""
        return 1 if self.offset is None else 2

    @property
    def head(self) -> int:
        """Bytes of the scale and the offset of a column."""
        return self.scale.bytes + (0 if self.offset is None else self.offset.bytes)

    @property
    def size(self) -> int:
        """Bytes of a block of a column."""
        return self.head + self.length * self.bits // 8

    @property
    def above(self) -> int:
        """Bytes of what some blocks of a column have in common."""
        return self.top.bytes * self.heads if self.over > 1 else 0

    @property
    def whole(self) -> int:
        """Bytes of as many blocks of a column as have a scale in common."""
        return self.above + self.over * self.size

    @property
    def power(self) -> int:
        """Codes come out of words times two to the power of this: those with a sign lie at the upper end."""
        if self.spread:
            return WORD - U8.bits
        return WORD - self.bits if self.signed else 0

    def code(self, words: Sequence[Value], number: int) -> Value:
        """The code with a number in a unit, or a vector of them, less the centre, times two to the `power`.

        ``words``: those of the unit, plane by plane. The result has 32 bits, of which every processor makes f32.
        """
        if self.spread:
            four = self.group(words, number // GROUP).bits(U32) + (128 - self.centre) * EACH_BYTE
            return _at_upper_end(four ^ 128 * EACH_BYTE, 8 * (number % GROUP), U8.bits)
        if self.signed:
            return _at_upper_end(words[0], place_of(number, self.bits), self.bits)
        parts = list[Value]()
        for bits, own in self._by_plane(words):
            each = WORD // bits
            word, place = own[number // each], place_of(number % each, bits)
            low = word >> place if place else word
            parts.append(low & _ones(bits) if place + bits < WORD else low)
        found = self._joined(parts).bits(I32)
        return found - self.centre if self.centre else found

    def float_code(self, words: Sequence[Value], number: int) -> Value:
        """The same of codes that are floats, in f32: sign, exponent and digits are where f32 has them.

        Exponents are those of f32 less 120, so what has no exponent there has none here, and the product is exact.
        """
        place = place_of(number, self.bits)
        high = words[0] << (WORD - self.bits - place) if place < WORD - self.bits else words[0]
        return ((high.bits(I32) >> 4).bits(U32) & _OF_F32).bits(F32) * 2.0**120  # a shift repeats the sign

    def group(self, words: Sequence[Value], number: int) -> Value:
        """Four neighbours as the bytes of a word, none of them less the centre; not of codes of 8 bits with a sign."""
        parts = list[Value]()
        for bits, own in self._by_plane(words):
            each = 8 // bits
            word, place = own[number // each], bits * (number % each)
            parts.append((word >> place if place else word) & _ones(bits) * EACH_BYTE)
        found = self._joined(parts)
        if self.spread:
            return _spread(found).bits(I32)
        return (found ^ self.centre * EACH_BYTE if self.signed else found).bits(I32)

    def _by_plane(self, words: Sequence[Value]) -> Iterator[tuple[int, Sequence[Value]]]:
        """For each plane, how many bits of a code it has, and its words of a unit."""
        first = 0
        for bits in self.planes:
            last = first + self.unit * bits // WORD
            yield bits, words[first:last]
            first = last

    def _joined(self, parts: Sequence[Value]) -> Value:
        """The bits of all planes, each behind those of the plane before."""
        found, shift = parts[0], 0
        for bits, part in zip(self.planes, parts[1:], strict=False):  # there is one more plane than borders
            shift += bits
            found = found | part << shift
        return found


EACH_BYTE: Final = 0x01010101
"""A word of so many ones: times an integer of 8 bits, it has that in each byte."""

_OF_F32: Final = 1 << 31 | 0x7F << 20
"""Where the sign and the other bits of a float of 8 bits are in one of f32."""


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _at_upper_end(word: Value, place: int, bits: int) -> Value:
    """The code at that bit of a word, with its sign, times two to the power of all bits that it has not."""
    high = word << (WORD - bits - place) if place < WORD - bits else word
    return (high & (_ones(bits) << (WORD - bits)) if place else high).bits(I32)


def _spread(codes: Value) -> Value:
    """Of each byte of words, up to 15: 17 times the lower three bits, which are up to 5, and 1 for the fourth bit.

    Less 43, these are the integers of ggml's IQ2: 8, 25 and 43, with either sign.
    """
    steps = codes & 7 * EACH_BYTE
    return (steps | steps << 4) + (codes >> 3 & EACH_BYTE)


def place_of(number: int, bits: int) -> int:
    """The lowest bit in a word of the code with a number."""
    return 8 * (number % GROUP) + bits * (number // GROUP)


class BlockReader:
    """One block of a panel of weights, while it is read."""

    def __init__(self, k: Kernel, form: BlockForm, tile: Tile, panel: Buffer, block: Value) -> None:
        """``tile``: which columns a panel has, and how many are a vector. ``panel``: its bytes."""
        columns = tile.columns
        self._k, self._form, self._lanes, self._columns = k, form, tile.lanes, columns
        self._above = panel.at(block // form.over * (columns * form.whole))
        self._memory = self._above.at(columns * form.above + block % form.over * (columns * form.size))
        self._starts: Sequence[Value | int] = range(0, columns, tile.lanes)

    def fetch(self, ahead: int) -> None:
        """Have memory brought near: as many bytes as the block has, which lie ``ahead`` bytes behind its begin."""
        for line in range(0, self._form.size * self._columns, CACHE_LINE):
            self._memory.prefetch(ahead + line)

    def of_column(self, column: Value) -> BlockReader:
        """The same block, of one column."""
        self._lanes, self._starts = 0, [column]
        return self

    def scales(self) -> list[Value]:
        """Of each vector of columns."""
        scales = self._part(self._memory, 0, self._form.scale)
        if self._form.over == 1:
            return scales
        return [one * top for one, top in zip(scales, self._part(self._above, 0, self._form.top), strict=True)]

    def scales_of_codes(self) -> list[Value]:
        """What codes as `codes` gives them are multiplied with."""
        power = self._form.power
        return [one * 2.0**-power for one in self.scales()] if power else self.scales()

    def offsets(self) -> list[Value] | None:
        """Of each vector of columns, if there are such."""
        form = self._form
        if form.offset is None:
            return None
        offsets = self._part(self._memory, form.scale.bytes, form.offset)
        if form.over == 1:
            return offsets
        return [one * top for one, top in zip(offsets, self._part(self._above, form.top.bytes, form.top), strict=True)]

    def units(self, number: Value) -> list[list[Value]]:
        """The words of the unit with a number, for each vector of columns."""
        form = self._form
        lines = self._memory.at(self._columns * form.head).of(U32).at(number * (form.lines * self._columns))
        places = [[self._k.index(one) + line * self._columns for line in range(form.lines)] for one in self._starts]
        return [[lines.vector(one, self._lanes) for one in line] for line in places]

    def codes(self, units: Sequence[Sequence[Value]], number: int) -> list[Value]:
        """The codes with a number in units, less the centre, in f32, times two to the power of the form."""
        form = self._form
        if form.floats:
            return [form.float_code(words, number) for words in units]
        return [self._k.convert(form.code(words, number), F32) for words in units]

    def _part(self, memory: Buffer, start: int, element: ElementType) -> list[Value]:
        part = memory.at(self._columns * start).of(element)
        return [self._k.convert(part.vector(one, self._lanes), F32) for one in self._starts]
