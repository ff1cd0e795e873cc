"""Numbers that lie in memory as small integers, blocks of which share a scale: read in words, unpacked in registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tract_llvm.elements.expressions import rounded
from tract_llvm.language.types import F32, U32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel

_WHOLE: Final = 2.0**23
"""From here on, the lowest bits of an f32 count whole numbers."""
_BITS_OF_WHOLE: Final = 0x4B000000


@frozen
class BlockForm:
    """How numbers lie in blocks along an axis. Each is (code - zero point) * scale, rounded to the type ``to``.

    ``length``: numbers of a block, whole words of 32 bits of codes. ``codes``: the integers, lowest bits first.
    ``apart``: whether the codes of one byte are of numbers as far apart as can be, the first from the first part of the
    block, and not of neighbours. ``unit``: in which integers codes are read, at multiples of which they lie. ``scale``:
    its type; ``zero``: the type of the zero point of each block, or that of all.
    """

    length: int
    codes: ElementType
    apart: bool
    unit: ElementType
    scale: ElementType
    zero: ElementType | int
    to: ElementType

    @property
    def each(self) -> int:
        """How many codes a word has."""
        return U32.bits // self.codes.bits

    @property
    def words(self) -> int:
        """How many words of codes a block has."""
        return self.length // self.each

    @property
    def units(self) -> int:
        """How many units a word has."""
        return U32.bits // self.unit.bits

    @property
    def span(self) -> int:
        """How many neighbours there are of which some words hold all, and nothing else."""
        return self.length if self.apart else self.each

    @property
    def run(self) -> int:
        """How many neighbours a word has, at least; as far as this is the next word's first number from its own."""
        return U32.bytes if self.apart else self.each

    @property
    def places(self) -> tuple[int, ...]:
        """How far the numbers of a word are from its first one, the one in the lowest bits first."""
        if not self.apart:
            return tuple(range(self.each))
        in_byte = 8 // self.codes.bits
        return tuple(n % in_byte * (self.length // in_byte) + n // in_byte for n in range(self.each))

    def parts(self) -> Iterator[tuple[str, ElementType]]:
        """What blocks have beside their codes: a tensor of one element for each block, by its name."""
        yield "scale", self.scale
        if isinstance(self.zero, ElementType):
            yield "zero", self.zero

    def numbers(self, word: Value, scale: Value, centre: Value) -> list[Value]:
        """The numbers of a word, in f32. ``scale``: of its block; ``centre``: what `centre_of` makes of that."""
        if self.codes.kind == "i":
            word = word ^ self._each_code(1 << (self.codes.bits - 1))
        found: list[Value] = []
        for number in range(self.each):
            code = (word >> (number * self.codes.bits)) & ((1 << self.codes.bits) - 1)
            found.append(rounded(((code | _BITS_OF_WHOLE).bits(F32) - centre) * scale, self.to))
        return found

    def centre_of(self, k: Kernel, zero: Value | None) -> Value:
        """The f32 whose lowest bits count the code that stands for 0. ``zero``: the zero point of a block, if any."""
        lowest = 1 << (self.codes.bits - 1) if self.codes.kind == "i" else 0
        if zero is None:
            assert isinstance(self.zero, int), "blocks have zero points, or all have one"
            return k.constant(_WHOLE + lowest + self.zero, F32)
        return k.convert(zero, F32) + (_WHOLE + lowest)

    def _each_code(self, bits: int) -> int:
        """A word with these bits in every code."""
        return sum(bits << (number * self.codes.bits) for number in range(self.each))


@dataclass(frozen=True, slots=True, eq=False)
class BlockReader:
    """Reads the blocks of a tensor. ``codes``: the name of the parameter that has them."""

    form: BlockForm
    k: Kernel
    codes: str

    def words(self, place: Value, count: int, wide: int = 1) -> list[Value]:
        """So many words of codes, from a place on, in units. ``wide``: at multiples of how many words they lie."""
        k, memory, found = self.k, self.k.memory(self.codes), list[Value]()
        if self.form.units == 1 and wide > 1:
            for first in range(0, count, wide):
                vector = k.read(memory, place + first, wide)
                found += [vector.lane(lane) for lane in range(wide)]
            return found
        for first in range(0, count * self.form.units, self.form.units):
            units = [k.convert(memory[place + first + n], U32) for n in range(self.form.units)]
            word = units[0]
            for number, one in enumerate(units[1:], 1):
                word = word | one << (number * self.form.unit.bits)
            found.append(word)
        return found

    def of_block(self, places: Sequence[Value]) -> tuple[Value, Value]:
        """The scale and the centre of a block. ``places``: where its parts are, as `BlockForm.parts` names them."""
        found = [self.k.memory(name)[at] for (name, _), at in zip(self.form.parts(), places, strict=True)]
        scale = self.k.convert(found[0], F32)
        return scale, self.form.centre_of(self.k, found[1] if len(found) > 1 else None)
