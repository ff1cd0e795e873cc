"""A tile of a matrix in blocks on its way to shared memory: words of codes in registers, unpacked when they are put."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tract_llvm.language.values import Value

from tract_cuda.kernels.blocks import BlockForm, BlockReader
from tract_cuda.kernels.product import AXES, Block
from tract_cuda.language.kernel import Kernel

PutFn = Callable[[Value, Value, Mapping[int, Value]], None]
"""``(column, depth, numbers)``: puts the numbers of a word of a column, by how far behind that depth they are."""


class TileWords:
    """The words that a thread has of a tile. ``columns``, ``depth``: its sizes, the depth a multiple of the span."""

    def __init__(self, k: Kernel, form: BlockForm, block: Block, columns: int, depth: int) -> None:
        self.k, self.form, self.block = k, form, block
        self._threads, self._whole, self._deep = k.threads, columns * depth // form.each, depth // form.each
        self._reader = BlockReader(form, k, "right")
        self._names = ["right", *(name for name, _ in form.parts())]
        self._in_span = form.span // form.each

    def read(self, depth: Value, end: Value, *, ragged: bool) -> list[Value]:
        """What a thread reads of the tile that begins at ``depth``: for each word, what `put` takes of it.

        Beyond the ends, scales are 0. ``ragged``: whether words may have codes beyond the end.
        """
        k, form, found = self.k, self.form, list[Value]()
        for column, word, there in self._loads():
            span, number = word // self._in_span, word % self._in_span
            base = depth + span * form.span
            first = base + number * form.run
            inside = (self.block.column + column < self.block.columns) & (first < end)
            inside = inside if there is None else inside & there
            safe = [k.select(inside, one, one.like(0)) for one in self._places(column, base, number)]
            scale, centre = self._reader.of_block(safe[1:])
            found += [*self._reader.words(safe[0], 1), k.select(inside, scale, scale.like(0)), centre]
            if ragged:
                found.append(k.select(inside, end - first, end.like(0)))
        return found

    def put(self, values: Sequence[Value], put: PutFn, *, ragged: bool) -> None:
        """Unpack the words that were read, and put the numbers of each to where they belong in shared memory."""
        each = 4 if ragged else 3
        for number, (column, word, there) in enumerate(self._loads()):
            one = values[number * each : (number + 1) * each]
            first = word // self._in_span * self.form.span + word % self._in_span * self.form.run
            if there is None:
                put(column, first, self._numbers(one))
            else:
                with self.k.when(there):
                    put(column, first, self._numbers(one))

    def _numbers(self, values: Sequence[Value]) -> dict[int, Value]:
        """The numbers of a word by how far they are from its first one; 0 for those beyond the end."""
        bits, scale, centre, *left = values
        found = dict(zip(self.form.places, self.form.numbers(bits, scale, centre), strict=True))
        if not left:
            return found
        return {there: self.k.select(left[0] > there, one, one.like(0)) for there, one in found.items()}

    def _loads(self) -> Iterator[tuple[Value, Value, Value | None]]:
        """For each word of a thread: its column and its number along the depth, and whether there is one at all."""
        for begin in range(0, self._whole, self._threads):
            here = self.k.thread() + begin
            there = here < self._whole if begin + self._threads > self._whole else None
            yield here // self._deep, here % self._deep, there

    def _places(self, column: Value, base: Value, number: Value) -> list[Value]:
        """Where a word is, and the other parts of its block. ``base``: where its span begins along the depth."""
        k, form, found = self.k, self.form, list[Value]()
        block, rest = k.divided(base, k.index(form.length))
        for name in self._names:
            pair, along, across = k.sizes(f"{name}.", AXES)
            found.append(self.block.pair * pair + block * along + (self.block.column + column) * across)
        found[0] = found[0] + (rest // form.each + number) * form.units
        return found
