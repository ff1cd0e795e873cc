"""Numbers in blocks, written to memory one by one: all of them, or those of slices that positions name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_llvm.language.types import I32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.blocks import BlockForm, BlockReader
from tract_cuda.kernels.gather import named_place, refuse
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class UnpackPlan:
    """One thread for a word of codes, in so many loops of slices along which blocks are.

    ``rank``: how many loops there are, the words of a slice not counted. ``index``: the type of positions that say
    which slices are wanted; ``None`` for all. ``wide``: how many numbers are written at once, which then lie side by
    side in multiples of them. ``ragged``: whether the last block may have codes for numbers that there are not.
    """

    form: BlockForm
    rank: int
    index: ElementType | None
    wide: int
    ragged: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "unpack"

    @property
    def threads(self) -> int:
        """Of a block of threads."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, with the words of a slice as the innermost; how long a slice is; the blocks, and the result.

        Each tensor with its strides along the loops, and along a slice: ``along``, from a block to the next one, and
        of the result from a number to the next one. With positions, these, what names a place, and how far apart the
        slices of each tensor are.
        """
        found = [*counted(self.rank + 1), Parameter("depth")]
        for name, element in (*self.read(), ("result", self.form.to)):
            found += [*strided(name, element, self.rank), Parameter(f"{name}.along")]
        if self.index is not None:
            found += [*strided("numbers", self.index, self.rank), Parameter("step"), Parameter("places0")]
            found += [Parameter("apart0"), Parameter("status", I32)]
            found += [Parameter(f"{name}.apart") for name, _ in self.read()]
        return tuple(found)

    def read(self) -> Iterator[tuple[str, ElementType]]:
        """What is read of blocks."""
        yield "codes", self.form.unit
        yield from self.form.parts()

    def emit(self, k: Kernel) -> None:
        """result[i, j, ..., d] = (codes[..., d] - zero[..., d // length]) * scale[..., d // length]"""
        with position(k, self.rank + 1) as at:
            *loops, word = at
            if self.index is None:
                self._write(k, loops, word, None)
                return
            slice_, inside = named_place(k, place(k, "numbers", loops), 1)
            with k.when(~inside):
                refuse(k)
            with k.when(inside):
                self._write(k, loops, word, slice_)

    def _write(self, k: Kernel, loops: Sequence[Value], word: Value, slice_: Value | None) -> None:
        form = self.form
        block, inner = k.divided(word, k.index(form.words))
        places = [place(k, name, loops) + block * k.size(f"{name}.along") for name, _ in self.read()]
        if slice_ is not None:
            apart = [k.size(f"{name}.apart") for name, _ in self.read()]
            places = [one + slice_ * step for one, step in zip(places, apart, strict=True)]
        reader = BlockReader(form, k, "codes")
        (bits,) = reader.words(places[0] + inner * form.units, 1)
        numbers = form.numbers(bits, *reader.of_block(places[1:]))
        self._put(k, loops, block * form.length + inner * form.run, numbers)

    def _put(self, k: Kernel, loops: Sequence[Value], first: Value, numbers: Sequence[Value]) -> None:
        """Write the numbers of a word. ``first``: where along the slice it begins."""
        result, begin, step = k.memory("result"), place(k, "result", loops), k.size("result.along")
        at = dict(zip(self.form.places, numbers, strict=True))
        for there in sorted(at)[:: self.wide]:
            if self.wide > 1:
                vector = k.vector_of([at[there + lane] for lane in range(self.wide)])
                k.write(result, begin + first + there, vector)
            elif self.ragged:
                with k.when(first + there < k.size("depth")):
                    result[begin + (first + there) * step] = at[there]
            else:
                result[begin + (first + there) * step] = at[there]
