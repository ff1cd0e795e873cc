"""Codes of weights as files have them, written as words of panels, where kernels of products read them."""

from __future__ import annotations

from functools import reduce
from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import INDEX, U8, U32
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.in_blocks.weights import EACH_BYTE, GROUP, WORD, BlockForm
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size, Taken

_SPREAD: Final = 0x00204081
"""Four bits times this are at the lowest places of four bytes, with others above them."""


@frozen
class CodePlane:
    """Some bits of each code of a block. ``start``: the byte where they begin; ``bits``: how many of each code.

    ``run``: how many codes that follow each other lie in as many bytes, all at the same place in theirs: first at the
    lowest place, and when that is full, the next codes at the place above. With a run of 1, a byte has the bits of
    eight neighbours, one each.
    """

    start: int
    bits: int
    run: int


@frozen
class CodesForm:
    """Where the codes of a block are.

    ``length``: codes of a block; ``size``: its bytes. ``planes``: the lowest bits first. ``plus``: is added to each, of
    which the lowest bits count; ``levels``: what codes stand for, by the code.
    """

    length: int
    size: int
    planes: tuple[CodePlane, ...]
    plus: int = 0
    levels: tuple[int, ...] | None = None

    @staticmethod
    def plain(length: int) -> CodesForm:
        """Codes of a byte each."""
        return CodesForm(length, length, (CodePlane(0, U8.bits, GROUP),))

    def four(self, k: Kernel, block: Buffer, number: int) -> Value:
        """The codes from a number on, which is one in four, as the bytes of a word."""
        found, shift = list[Value](), 0
        for plane in self.planes:
            part = _bits_of_four(block, plane, number)
            found.append(part << shift if shift else part)
            shift += plane.bits
        word = reduce(lambda a, b: a | b, found)
        if self.levels is not None:
            table = k.table(self.levels, U8)
            each = [table[k.convert(word >> 8 * place & 0xFF, INDEX)] for place in range(GROUP)]
            word = reduce(lambda a, b: a | b, (k.convert(one, U32) << 8 * place for place, one in enumerate(each)))
        return word + self.plus * EACH_BYTE if self.plus else word


def _bits_of_four(block: Buffer, plane: CodePlane, number: int) -> Value:
    """Those of a plane, at the lowest places of the bytes of a word."""
    ones, each = (1 << plane.bits) - 1, U8.bits // plane.bits
    if plane.run == 1:
        byte = block.function.convert(block[plane.start + number // U8.bits], U32)
        return (byte >> number % U8.bits & 0xF) * _SPREAD & EACH_BYTE
    byte, shift = number // (plane.run * each) * plane.run + number % plane.run, number // plane.run % each
    word = block.together(plane.start + byte, U32)
    return word >> plane.bits * shift & ones * EACH_BYTE


@frozen
class LayCodesPlan:
    """``codes``: where codes come from; ``form``: how they are to lie, in panels of ``width`` columns."""

    codes: CodesForm
    form: BlockForm
    width: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "lay_codes"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``blocks``: of a column, as the source has them."""
        return Signature.of(*map(Size, ("columns", "blocks")), Memory("source", U8), Memory("panels", U8))

    def emit(self, k: Kernel) -> None:
        """The words of all columns, a task for each panel. Beyond the last column nothing is put."""
        taken = self.signature.taken(k)
        columns = taken.size("columns")
        with k.loop("task", k.end, k.begin) as task, k.loop("block", taken.size("blocks")) as block:
            first = task * self.width
            there = k.smaller(columns - first, self.width)
            words = self._words_of(k, taken, task, block)
            with k.loop("column", there) as column:
                place = ((first + column) * taken.size("blocks") + block) * self.codes.size
                self._lay(k, taken.memory("source").at(place), [one.at(column) for one in words])

    def _words_of(self, k: Kernel, taken: Taken, task: Value, block: Value) -> list[Buffer]:
        """The words of each of our blocks that are made of one of the source, in a panel."""
        form, parts = self.form, self.codes.length // self.form.length
        whole = taken.size("blocks") * parts // form.over * (form.whole * self.width)
        panel, found = taken.memory("panels").at(task * whole), list[Buffer]()
        for part in range(parts):
            number = block * parts + part
            above = panel.at(number // form.over * (form.whole * self.width) + form.above * self.width)
            inside = number % form.over * (form.size * self.width) + form.head * self.width
            found.append(above.at(inside).of(U32))
        return found

    def _lay(self, k: Kernel, block: Buffer, words: list[Buffer]) -> None:
        """The words of a column, of one block of the source."""
        for part, target in enumerate(words):
            line = 0
            for unit in range(self.form.length // self.form.unit):
                first, shift = part * self.form.length + unit * self.form.unit, 0
                for bits in self.form.planes:
                    for word in range(self.form.unit * bits // WORD):
                        at = first + word * (WORD // bits)
                        fours = [self.codes.four(k, block, at + GROUP * one) for one in range(U8.bits // bits)]
                        target[line * self.width] = _word(fours, bits, shift)
                        line += 1
                    shift += bits


def _word(fours: list[Value], bits: int, shift: int) -> Value:
    """Some bits of each code, from ``shift`` on, of four neighbours above those of the four before them."""
    ones = ((1 << bits) - 1) * EACH_BYTE
    parts = [(one >> shift if shift else one) & ones for one in fours]
    return reduce(lambda a, b: a | b, (one << bits * place if place else one for place, one in enumerate(parts)))
