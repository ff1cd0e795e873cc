"""Rows of a matrix in blocks that a tensor of indices names, as they are looked up in a table of embeddings."""

from __future__ import annotations

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, INDEX, U8, U64, ElementType

from tract_core.frozen import frozen
from tract_cpu.kernels.in_blocks.weights import BlockForm, BlockReader
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size
from tract_cpu.kernels.sums import Tile


@frozen
class BlockRowsPlan:
    """``form``: how the matrix lies, in panels of ``width`` rows; ``index``: the type of the indices."""

    form: BlockForm
    width: int
    index: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "gather"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``rows``: of the matrix, ``blocks``: of each."""
        return Signature.of(
            *map(Size, ("rows", "blocks")),
            Memory("panels", U8),
            Memory("numbers", self.index),
            Memory("result", F32),
            Memory("status", INDEX),
        )

    def emit(self, k: Kernel) -> None:
        """result[i, :] = matrix[numbers[i], :], a task for each index. Refuses for one outside; negative ones count."""
        taken, form = self.signature.taken(k), self.form
        rows, blocks = taken.size("rows"), taken.size("blocks")
        panels, numbers, result = taken.memory("panels"), taken.memory("numbers"), taken.memory("result")
        with k.loop("task", k.end, k.begin) as task:
            number = k.convert(numbers[task], INDEX)
            number = k.select(number < 0, number + rows, number)
            with k.either(number.bits(U64) < rows.bits(U64)) as (inside, outside):
                with inside:
                    panel = panels.at(number // self.width * (blocks // form.over) * (self.width * form.whole))
                    target = result.at(task * blocks * form.length)
                    with k.loop("block", blocks) as block:
                        reader = BlockReader(k, form, Tile(1, 1, self.width), panel, block).of_column(
                            number % self.width
                        )
                        self._unpack(k, reader, target.at(block * form.length))
                with outside:
                    taken.memory("status")[0] = k.index(1)

    def _unpack(self, k: Kernel, reader: BlockReader, target: Buffer) -> None:
        """The numbers of a block of one row."""
        form, (scale,), offsets = self.form, reader.scales_of_codes(), reader.offsets()
        with k.loop("unit", form.length // form.unit) as number:
            units = reader.units(number)
            for one in range(form.unit):
                (found,) = [code * scale for code in reader.codes(units, one)]
                target[number * form.unit + one] = found if offsets is None else found + offsets[0]
