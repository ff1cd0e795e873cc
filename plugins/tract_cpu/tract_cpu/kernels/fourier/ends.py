"""How elements of several Fourier transforms come from memory into the lanes of vectors, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_cpu.kernels.fourier.butterflies import Complex
from tract_cpu.kernels.fourier.passes import Numbers
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.transpose import PIECE_BITS, turned_squares


class Lying(Enum):
    """How transforms lie in memory."""

    ROWS = "rows"
    """Each without gaps."""
    COLUMNS = "columns"
    """Each beside the next one, as long as the innermost loop goes round."""
    FAR = "far"
    """Any other way."""


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """Pairs of numbers in memory, ``step`` elements apart in each transform.

    ``offsets``: where the transform of each lane begins. ``neighbours``: whether columns are beside each other for all
    lanes. ``swaps``: whether real and imaginary parts change places on the way. ``sums``: the type of the numbers that
    are transformed.
    """

    k: Kernel
    memory: Buffer
    step: Value
    lying: Lying
    offsets: Buffer
    neighbours: Value
    swaps: bool
    sums: ElementType

    def read(self, length: Value, work: Numbers, places: Buffer, window: Buffer | None) -> None:
        """work[places[position]] = the number there, times that of the window."""

        def adapted(position: Value, number: Complex) -> Complex:
            number = self._as(number.swapped() if self.swaps else number, self.sums)
            return number if window is None else number.times(window[position])

        def single(position: Value, lane: Value, at: Buffer) -> None:
            work.put_lane(places[position], lane, adapted(position, Complex(at[0], at[1])))

        def column(position: Value, at: Buffer) -> None:
            work[places[position]] = adapted(position, self._taken_apart(at, work.lanes))

        def square(position: Value) -> None:
            parts = self._read_square(position, work.lanes)
            for number, (real, imaginary) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
                work[places[position + number]] = adapted(position + number, Complex(real, imaginary))

        self._go_over(length, work.lanes, single, column, square)

    def write(self, length: Value, numbers: Numbers) -> None:
        """The number at each position is written there."""

        def adapted(number: Complex) -> Complex:
            return self._as(number.swapped() if self.swaps else number, self.memory.element.computed)

        def single(position: Value, lane: Value, at: Buffer) -> None:
            number = adapted(numbers.lane(position, lane))
            at[0], at[1] = number.real, number.imaginary

        def column(position: Value, at: Buffer) -> None:
            number = adapted(numbers[position])
            order = [place + half for place in range(numbers.lanes) for half in (0, numbers.lanes)]
            at.put(0, self.k.shuffled(number.real, number.imaginary, order))

        def square(position: Value) -> None:
            pairs = [adapted(numbers[position + one]) for one in range(self._square // 2)]
            self._write_square(position, [part for one in pairs for part in (one.real, one.imaginary)])

        self._go_over(length, numbers.lanes, single, column, square)

    def _as(self, number: Complex, element: ElementType) -> Complex:
        return Complex(self.k.convert(number.real, element), self.k.convert(number.imaginary, element))

    @property
    def _square(self) -> int:
        """How many real numbers of a transform are turned around at once."""
        return PIECE_BITS // self.memory.element.bits

    def _go_over(
        self,
        length: Value,
        lanes: int,
        single: Callable[[Value, Value, Buffer], None],
        column: Callable[[Value, Buffer], None],
        square: Callable[[Value], None],
    ) -> None:
        """Visit all numbers of all lanes: one by one, position by position, or some positions at once."""
        k = self.k
        lying = self.lying if lanes else Lying.FAR

        def singles(start: Value) -> None:
            with k.loop("lane", max(lanes, 1)) as lane, k.loop("single", length, start) as position:
                single(position, lane, self.memory.at(self.offsets[lane] + position * self.step))

        if lying is Lying.FAR:
            singles(k.index(0))
        elif lying is Lying.COLUMNS:
            with k.either(self.neighbours) as (then, otherwise):
                with then, k.loop("column", length) as position:
                    column(position, self.memory.at(self.offsets[0] + position * self.step))
                with otherwise:
                    singles(k.index(0))
        else:
            whole = length - length % (self._square // 2)
            with k.loop("square", whole, step=self._square // 2) as position:
                square(position)
            singles(whole)

    def _taken_apart(self, at: Buffer, lanes: int) -> Complex:
        low, high = at.vector(0, lanes), at.vector(lanes, lanes)
        parts = [self.k.shuffled(low, high, range(first, 2 * lanes, 2)) for first in (0, 1)]
        return Complex(parts[0], parts[1])

    def _read_square(self, position: Value, lanes: int) -> list[Value]:
        """Real and imaginary parts, position by position: vectors of all lanes."""
        k, width = self.k, self._square
        rows: list[Value] = []
        for one in range(width):
            numbers = range(one, lanes, width)
            pieces = [self.memory.at(self.offsets[lane] + position * 2).vector(0, width) for lane in numbers]
            rows.append(k.joined(pieces))
        return turned_squares(k, rows, width)

    def _write_square(self, position: Value, parts: list[Value]) -> None:
        width, lanes = self._square, parts[0].lanes
        for one, row in enumerate(turned_squares(self.k, parts, width)):
            for first in range(0, lanes, width):
                piece = self.k.shuffled(row, row, range(first, first + width))
                self.memory.at(self.offsets[first + one] + position * 2).put(0, piece)
