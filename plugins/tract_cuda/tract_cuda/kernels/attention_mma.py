"""Attention on tensor cores: scores never leave registers, keys and values are copied to shared memory a tile ahead.

The order of what is done is that of FlashAttention-2: https://arxiv.org/abs/2307.08691
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.convert import to_memory
from tract_llvm.language.types import F32, U8, ElementType
from tract_llvm.language.values import Value, Variable
from tract_llvm.llvm import ir

from tract_core.frozen import frozen
from tract_cuda.kernels.attention import Around, parameters_of
from tract_cuda.kernels.online import Online
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.language.matrices import HALVES, PIECE, Factors, accumulate, commit, copy_later, fragments, wait, zeros

HIGH = 16
"""Queries of a warp."""

STAGES = 2
"""Tiles of keys and values that there is room for: one is used while the next one is copied."""


@frozen
class AttentionMmaPlan:
    """As `AttentionPlan`, for halves. ``warps``: of a block, each with 16 queries; ``keys``: of a tile.

    ``keys``, ``depth`` and ``width`` are multiples of 16. Rows of all tensors lie in pieces of 16 bytes, at multiples
    of which they begin; their steps are 1.
    ``rank``: how many loops over pairs there are; ``powers``: what becomes of scores; ``result``: the type of results.
    """

    warps: int
    keys: int
    element: ElementType
    depth: int
    width: int
    rank: int
    expression: Expression
    powers: Expression
    result: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "attention_mma"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps * WARP

    @property
    def queries(self) -> int:
        """Of a block."""
        return self.warps * HIGH

    @property
    def parameters(self) -> Sequence[Parameter]:
        """As of `AttentionPlan`."""
        return parameters_of(self)

    def emit(self, k: Kernel) -> None:
        """The queries of this block."""
        _Attention(self, k).write()


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A factor as rows of pieces in shared memory. ``rows``: of a tile; ``pieces``: in a row; ``count``: of all rows.

    ``pitch``: pieces from row to row, an odd number, so that neighbouring rows lie in other banks.
    """

    name: str
    memory: Buffer
    shared: Buffer
    begin: Value
    rows: int
    pieces: int
    count: Value

    @property
    def pitch(self) -> int:
        return self.pieces | 1

    @property
    def bytes(self) -> int:
        """Of a tile."""
        return self.rows * self.pitch * PIECE

    def place(self, row: Value, piece: Value) -> Value:
        """Where a piece lies in a tile, in bytes."""
        return (row * self.pitch + piece) * PIECE


class _Attention:
    """While it is written."""

    def __init__(self, plan: AttentionMmaPlan, k: Kernel) -> None:
        self.plan, self.k, self.factors = plan, k, Factors(plan.element, plan.element)
        self.around, self.row = Around(plan, k, plan.queries), k.warp() * HIGH
        self.query = self._held("query", plan.queries, plan.depth, self.around.queries)
        self.key = self._held("key", plan.keys, plan.depth, self.around.keys, STAGES)
        self.value = self._held("value", plan.keys, plan.width, self.around.keys, STAGES)

    def _held(self, name: str, rows: int, length: int, count: Value, stages: int = 1) -> _Held:
        k, pieces = self.k, length // HALVES
        shared = k.shared(U8, rows * (pieces | 1) * PIECE * stages)
        return _Held(name, k.memory(name), shared, self.around.begin(name), rows, pieces, count)

    def write(self) -> None:
        """The whole kernel."""
        k, plan = self.k, self.plan
        self._fetch(self.query, self.around.first, k.index(0))
        self._fetch_both(k.index(0), k.index(0))
        online = Online(k, 2, 4, plan.powers, F32)
        mixed = [zeros(k) for _ in range(plan.width // 8)]
        stage = k.variable(k.index(0))
        with k.loop("keys", self.around.keys, 0, plan.keys) as first:
            now = stage.value
            wait(k, 0)
            k.barrier()
            stage.value = 1 - now
            self._fetch_both(first + plan.keys, stage.value)
            powers = self._scored(first, now, online, mixed)
            self._mix(now, powers, mixed)
        wait(k, 0)
        self._give(online, mixed)

    def _fetch(self, held: _Held, first: Value, stage: Value) -> None:
        """Have rows of a factor copied to a stage."""
        k, whole = self.k, held.rows * held.pieces
        for start in range(0, whole, self.plan.threads):
            here = k.thread() + start
            row, piece = here // held.pieces, here % held.pieces
            place = held.begin + (first + row) * k.size(f"{held.name}.row") + piece * HALVES
            inside = first + row < held.count
            size = k.select(inside, k.index(PIECE), k.index(0))
            target = held.shared.address(stage * held.bytes + held.place(row, piece))
            if start + self.plan.threads <= whole:
                copy_later(k, target, held.memory.address(k.select(inside, place, place.like(0))), size)
                continue
            with k.when(here < whole):
                copy_later(k, target, held.memory.address(k.select(inside, place, place.like(0))), size)

    def _fetch_both(self, first: Value, stage: Value) -> None:
        self._fetch(self.key, first, stage)
        self._fetch(self.value, first, stage)
        commit(self.k)

    def _scored(
        self, first: Value, stage: Value, online: Online, mixed: Sequence[Sequence[Variable]]
    ) -> list[list[Any]]:
        """The powers of a tile of scores, as fragments of 16 keys each."""
        k, plan, lane = self.k, self.plan, self.k.lane()
        sums = [zeros(k) for _ in range(plan.keys // 8)]
        for inner in range(0, plan.depth, 16):
            place = self.query.place(self.row + (lane & 15), (lane >> 4) + inner // HALVES)
            a = fragments(k, self.query.shared, place)
            for column in range(0, plan.keys, 16):
                row = (lane & 7) + ((lane >> 4) << 3) + column
                place = stage * self.key.bytes + self.key.place(row, ((lane >> 3) & 1) + inner // HALVES)
                b = fragments(k, self.key.shared, place)
                accumulate(k, self.factors, sums[column // 8], a, b[:2])
                accumulate(k, self.factors, sums[column // 8 + 1], a, b[2:])
        halves = [self._powers(half, first, sums, online, mixed) for half in range(2)]
        pairs = [[self._pair(line[n : n + 2]) for n in range(0, len(line), 2)] for line in halves]
        return [
            [pairs[0][tile], pairs[1][tile], pairs[0][tile + 1], pairs[1][tile + 1]]
            for tile in range(0, plan.keys // 8, 2)
        ]

    def _powers(
        self,
        half: int,
        first: Value,
        sums: Sequence[Sequence[Variable]],
        online: Online,
        mixed: Sequence[Sequence[Variable]],
    ) -> list[Value]:
        """The powers that a thread has of one of its two rows."""
        lane = self.k.lane()
        query = self.around.first + self.row + ((lane >> 2) + 8 * half)
        scores = [
            self.around.score(query, first + ((lane & 3) << 1) + (8 * tile + number), line[2 * half + number].value)
            for tile, line in enumerate(sums)
            for number in range(2)
        ]
        found, factor = online.taken(half, scores)
        for line in mixed:
            for one in line[2 * half : 2 * half + 2]:
                one.value = one.value * factor
        return found

    def _pair(self, values: Sequence[Value]) -> Any:
        """Two numbers as one register of a fragment."""
        stored = to_memory(self.k.vector_of(values), self.plan.element)
        return self.k.builder.bitcast(stored.ir, ir.IntType(32))

    def _mix(self, stage: Value, powers: Sequence[Sequence[Any]], mixed: Sequence[Sequence[Variable]]) -> None:
        """Values of a tile, by powers."""
        k, plan, lane = self.k, self.plan, self.k.lane()
        for number, a in enumerate(powers):
            for column in range(0, plan.width, 16):
                place = self.value.place((lane & 15) + 16 * number, (lane >> 4) + column // HALVES)
                b = fragments(k, self.value.shared, stage * self.value.bytes + place, turned=True)
                accumulate(k, self.factors, mixed[column // 8], a, b[:2])
                accumulate(k, self.factors, mixed[column // 8 + 1], a, b[2:])

    def _give(self, online: Online, mixed: Sequence[Sequence[Variable]]) -> None:
        k, lane, result = self.k, self.k.lane(), self.k.memory("result")
        begin = self.around.begin("result")
        for half in range(2):
            query, total = self.around.first + self.row + ((lane >> 2) + 8 * half), online.total(half)
            total = k.select(self.around.keys.equals(0), total.like(1), total)
            with k.when(query < self.around.queries):
                for tile, line in enumerate(mixed):
                    place = begin + query * k.size("result.row") + ((lane & 3) << 1) + 8 * tile
                    given = [one.value / total for one in line[2 * half : 2 * half + 2]]
                    k.write(result, place, k.vector_of(given))
