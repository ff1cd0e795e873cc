"""Rows of a matrix in blocks that a tensor of indices names, as they are looked up in a table of embeddings."""

from __future__ import annotations

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, INDEX, U8, U32, U64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.block_weights import BlockForm
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size


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
        taken = self.signature.taken(k)
        rows, blocks = taken.size("rows"), taken.size("blocks")
        panels, numbers, result = taken.memory("panels"), taken.memory("numbers"), taken.memory("result")
        with k.loop("task", k.end, k.begin) as task:
            number = k.convert(numbers[task], INDEX)
            number = k.select(number < 0, number + rows, number)
            with k.either(number.bits(U64) < rows.bits(U64)) as (inside, outside):
                with inside:
                    panel = panels.at(number // self.width * blocks * (self.width * self.form.size))
                    target = result.at(task * blocks * self.form.length)
                    with k.loop("block", blocks) as block:
                        memory = panel.at(block * (self.width * self.form.size))
                        self._unpack(k, memory, number % self.width, target.at(block * self.form.length))
                with outside:
                    taken.memory("status")[0] = k.index(1)

    def _unpack(self, k: Kernel, memory: Buffer, row: Value, target: Buffer) -> None:
        """The numbers of a block of one row."""
        form, width = self.form, self.width
        scale = k.convert(memory.of(form.scale)[row], F32)
        offset = None
        if form.offset is not None:
            offset = k.convert(memory.at(width * form.scale.bytes).of(form.offset)[row], F32)
        words = memory.at(width * form.head).of(U32)
        with k.loop("word", form.length // form.codes) as number:
            word = words[number * width + row]
            for one in range(form.codes):
                code = k.convert(form.code(word, one), F32) * 2.0**-form.power
                found = code * scale
                target[number * form.codes + one] = found if offset is None else found + offset
