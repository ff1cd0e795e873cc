"""Products of halves on tensor cores whose right factor lies in blocks: unpacked on its way to shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_llvm.language.types import F16
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.kernels.product import parameters_of_tiles
from tract_cuda.kernels.products.mma import MmaPlan, MmaTileWriter
from tract_cuda.kernels.products.tile_blocks import TileWords
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.language.matrices import HALVES


@frozen
class MmaBlocksPlan:
    """A product as ``mma`` has it, whose right factor lies in blocks of a ``form`` that stand for halves of its type.

    The depth of tiles is a multiple of the span. ``ragged``: whether the last block may have codes beyond the depth.
    """

    mma: MmaPlan
    form: BlockForm
    ragged: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "mma_blocks"

    @property
    def threads(self) -> int:
        """Of a block of threads."""
        return self.mma.threads

    @property
    def parameters(self) -> Sequence[Parameter]:
        """As of `TilePlan`."""
        return parameters_of_tiles(
            self.mma.factors.left, self.form.unit, self.mma.expression, self.mma.windows, self.form
        )

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of left[p, i, d] * right[p, d, j] over d, operands[p, i, j], ...)"""
        _Unpacked(self, k).write()


class _Unpacked(MmaTileWriter):
    """A tile while it is written. The words of the tile that is fetched next are in registers."""

    def __init__(self, plan: MmaBlocksPlan, k: Kernel) -> None:
        super().__init__(plan.mma, k)
        self._form, self._ragged, tile = plan.form, plan.ragged, plan.mma.tile
        self._words = TileWords(k, plan.form, self.block, tile.columns, tile.depth)
        self._ahead = [k.variable(one) for one in self._read(self.begin)]

    def _read(self, depth: Value) -> list[Value]:
        return self._words.read(depth, self.end, ragged=self._ragged)

    def _fetch(self, depth: Value, stage: Value) -> None:
        """The left factor is copied; of the right one, what is in registers is put there, and the next words read."""
        self._copy((self.left,), depth, stage)

        def put(column: Value, first: Value, numbers: Mapping[int, Value]) -> None:
            self._put_word(stage, column, first, numbers)

        self._words.put([one.value for one in self._ahead], put, ragged=self._ragged)
        for variable, value in zip(self._ahead, self._read(depth + self.tile.depth), strict=True):
            variable.value = value

    def _put_word(self, stage: Value, column: Value, first: Value, numbers: Mapping[int, Value]) -> None:
        """As many neighbours at once as a word surely has, within a piece."""
        k, right, element, lanes = self.k, self.right, self.plan.factors.right, min(self._form.run, HALVES)
        for there in sorted(numbers)[::lanes]:
            depth = first + there
            place = stage * right.bytes + right.place(column, depth // HALVES) + depth % HALVES * F16.bytes
            vector = k.vector_of([k.convert(numbers[there + lane], element) for lane in range(lanes)])
            k.write(right.shared.at(place).of(element), 0, vector)
