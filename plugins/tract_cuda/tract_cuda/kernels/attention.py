"""Attention without its matrix: a block for some queries goes over all keys, and mixes values as scores come.

The order of what is done is that of FlashAttention: https://arxiv.org/abs/2205.14135
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value, Variable

from tract_core.frozen import frozen
from tract_cuda.kernels.online import Online
from tract_cuda.kernels.positions import place, strided
from tract_cuda.kernels.sums import operands_of
from tract_cuda.language.arch import ACCESS_BYTES
from tract_cuda.language.kernel import Kernel, Parameter, sizes

FACTORS: Final = ("query", "key", "value")

_UNROLLED: Final = 8
_AT_ONCE: Final = 4
"""How many vectors a thread reads before it keeps them."""


@frozen
class AttentionTile:
    """``queries``, ``keys``: of the scores that a block has at once; ``down``, ``across``: of those that a thread has.

    The threads of a row are a power of two, at most 32.
    """

    queries: int
    keys: int
    down: int
    across: int

    @property
    def lanes(self) -> int:
        """How many threads share a row."""
        return self.keys // self.across

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.queries // self.down * self.lanes


class Attends(Protocol):
    """What plans of attention have in common: see `AttentionPlan`."""

    @property
    def element(self) -> ElementType:
        """Of queries, keys and values."""
        ...

    @property
    def rank(self) -> int:
        """How many loops there are around."""
        ...

    @property
    def expression(self) -> Expression:
        """What becomes of a sum."""
        ...

    @property
    def result(self) -> ElementType:
        """The type of the result."""
        ...


@frozen
class AttentionPlan:
    """result[q, w] = sum of value[k, w] * softmax over k of expression(sum of query[q, d] * key[k, d], ...)

    ``element``: the type of queries, keys and values; ``depth``, ``width``: how many numbers a query and a value have;
    ``wide``: how many of them, and of those of the result, are read and written at once. ``rank``: how many loops there
    are around. ``expression``: its first input is the sum, rounded to that type, the others are operands. ``powers``:
    of a score and the largest one, in the type in which all is computed. ``result``: the type of the result.
    """

    tile: AttentionTile
    element: ElementType
    depth: int
    width: int
    wide: int
    rank: int
    expression: Expression
    powers: Expression
    result: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "attention"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.tile.threads

    @property
    def parameters(self) -> Sequence[Parameter]:
        """See `parameters_of`."""
        return parameters_of(self)

    def emit(self, k: Kernel) -> None:
        """The queries of this block."""
        _Attention(self, k).write()


def parameters_of(plan: Attends) -> tuple[Parameter, ...]:
    """The sizes of the loops around, ``queries``, ``keys``; each tensor, and its strides.

    These are: along the loops around; from row to row, and within one; of operands, along queries and along keys.
    """
    found = [*sizes("around", plan.rank), Parameter("queries"), Parameter("keys")]
    factors = ((name, plan.element) for name in FACTORS)
    for name, element in (*factors, *operands_of(plan.expression), ("result", plan.result)):
        found += [*strided(name, element, plan.rank), Parameter(f"{name}.row"), Parameter(f"{name}.step")]
    return tuple(found)


class Around:
    """Where a block is: ``first``, the first of its queries, of those at some position of the loops around."""

    def __init__(self, plan: Attends, k: Kernel, queries: int) -> None:
        """``queries``: of a block."""
        self.k, self.expression = k, plan.expression
        self.queries, self.keys = k.size("queries"), k.size("keys")
        *self.at, block = k.spot(k.block(), [*k.sizes("around", plan.rank), (self.queries + (queries - 1)) // queries])
        self.first = block * queries
        self._begins = {name: self.begin(name) for name, _ in operands_of(plan.expression)}

    def begin(self, name: str) -> Value:
        """Where a tensor begins for this block."""
        return place(self.k, name, self.at)

    def score(self, query: Value, key: Value, total: Value) -> Value:
        """What becomes of a sum: -inf where there is no such key."""
        k, inside = self.k, key < self.keys
        safe = inside & (query < self.queries)
        operands = [
            k.read(
                k.memory(name),
                k.select(safe, begin + query * k.size(f"{name}.row") + key * k.size(f"{name}.step"), begin.like(0)),
                0,
            )
            for name, begin in self._begins.items()
        ]
        found = self.expression.compute([rounded(total, self.expression.inputs[0]), *operands])
        return k.select(inside, k.convert(found, total.type), total.like(-inf))


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A tile of a factor in shared memory. ``pitch``: elements from row to row; ``turned``: rows are columns there."""

    name: str
    memory: Buffer
    shared: Buffer
    begin: Value
    rows: int
    length: int
    pitch: int
    turned: bool


class _Attention:
    """While it is written."""

    def __init__(self, plan: AttentionPlan, k: Kernel) -> None:
        self.plan, self.k, self.tile = plan, k, plan.tile
        self.around, self.sums = Around(plan, k, plan.tile.queries), plan.element.computed
        self.across, self.down = k.thread() % plan.tile.lanes, k.thread() // plan.tile.lanes
        self.each = _rounded_up(plan.width, plan.tile.lanes * self._most) // plan.tile.lanes
        self.query = self._tile("query", plan.tile.queries, turned=True)
        self.key, self.value = self._tile("key", plan.tile.keys, turned=True), self._tile("value", plan.tile.keys)
        self.powers = k.shared(self.sums, plan.tile.keys * self.query.pitch)

    @property
    def _most(self) -> int:
        """Numbers of one access to shared memory."""
        lanes = min(ACCESS_BYTES // self.plan.element.computed.bytes, self.tile.down, self.tile.across)
        return lanes if self.plan.width > self.tile.lanes else 1

    def _tile(self, name: str, rows: int, *, turned: bool = False) -> _Held:
        k, plan = self.k, self.plan
        length = plan.depth if turned else self.each * self.tile.lanes
        pitch = rows + ACCESS_BYTES // self.sums.bytes if turned else length
        shared = k.shared(self.sums, pitch * (length if turned else rows))
        return _Held(name, k.memory(name), shared, self.around.begin(name), rows, length, pitch, turned)

    def write(self) -> None:
        """The whole kernel."""
        k, plan, tile = self.k, self.plan, self.tile
        self._fetch(self.query, self.around.first, self.around.queries)
        online = Online(k, tile.down, tile.lanes, plan.powers, self.sums)
        mixed = [[k.variable(k.constant(0, self.sums)) for _ in range(self.each)] for _ in range(tile.down)]
        with k.loop("keys", self.around.keys, 0, tile.keys) as first:
            k.barrier()
            self._fetch(self.key, first, self.around.keys)
            self._fetch(self.value, first, self.around.keys)
            k.barrier()
            self._scored(first, online, mixed)
            k.barrier()
            self._mix(mixed)
        self._give(online, mixed)

    def _fetch(self, held: _Held, first: Value, count: Value) -> None:
        """Rows of a factor into shared memory, zeros where there are none: several reads are on their way at once."""
        whole, threads = held.rows * (held.length // self.plan.wide), self.plan.threads
        starts = range(0, whole, threads)
        for group in range(0, len(starts), _AT_ONCE):
            numbers = [self.k.thread() + start for start in starts[group : group + _AT_ONCE]]
            values = [self._read(held, first, count, number) for number in numbers]
            for start, number, value in zip(starts[group : group + _AT_ONCE], numbers, values, strict=True):
                if start + threads <= whole:
                    self._keep(held, number, value)
                else:
                    with self.k.when(number < whole):
                        self._keep(held, number, value)

    def _read(self, held: _Held, first: Value, count: Value, number: Value) -> Value:
        """A vector of a tile."""
        k, wide = self.k, self.plan.wide
        length = self.plan.depth if held.turned else self.plan.width
        row, spot = self._spot(held, number)
        inside = (row < held.rows) & (first + row < count) & (spot < length)
        place = held.begin + (first + row) * k.size(f"{held.name}.row") + spot * k.size(f"{held.name}.step")
        value = k.read(held.memory, k.select(inside, place, place.like(0)), wide if wide > 1 else 0)
        value = k.convert(value, self.sums)
        return k.select(inside, value, value.like(0))

    def _keep(self, held: _Held, number: Value, value: Value) -> None:
        row, spot = self._spot(held, number)
        if not held.turned:
            self.k.write(held.shared, row * held.pitch + spot, value)
        for lane in range(self.plan.wide if held.turned else 0):
            held.shared[(spot + lane) * held.pitch + row] = value.lane(lane) if value.lanes else value

    def _spot(self, held: _Held, number: Value) -> tuple[Value, Value]:
        pieces = held.length // self.plan.wide
        return number // pieces, number % pieces * self.plan.wide

    def _summed(self, sums: Sequence[Sequence[Variable]], count: int, rows: _Held | Buffer, columns: _Held) -> None:
        """Add products of rows and columns over so many positions, which lie one behind the other in both."""
        k = self.k
        whole = count // _UNROLLED * _UNROLLED

        def one(place: Value) -> None:
            left = rows.shared if isinstance(rows, _Held) else rows
            a = self._vector(left, place * self.query.pitch, [self.down * self.tile.down + i for i in range(len(sums))])
            b = self._vector(columns.shared, place * columns.pitch, self._columns(len(sums[0])))
            for i, x in enumerate(a):
                for j, y in enumerate(b):
                    sums[i][j].value = x.times_plus(y, sums[i][j].value)

        with k.loop("summed", k.index(whole), 0, _UNROLLED) as first:
            for number in range(_UNROLLED):
                one(first + number)
        for number in range(whole, count):
            one(k.index(number))

    def _columns(self, each: int) -> list[Value]:
        """Which columns a thread has: neighbours as one access reads them, so that threads go side by side."""
        group = self._group(each)
        return [self.across * group + (n // group * group * self.tile.lanes + n % group) for n in range(each)]

    def _group(self, each: int) -> int:
        found = ACCESS_BYTES // self.sums.bytes
        while each % found:
            found //= 2
        return found

    def _vector(self, shared: Buffer, begin: Value, places: Sequence[Value]) -> list[Value]:
        """Numbers at places of which groups lie side by side."""
        group, found = self._group(len(places)), list[Value]()
        for first in range(0, len(places), group):
            value = self.k.read(shared, begin + places[first], group if group > 1 else 0)
            found += [value.lane(lane) for lane in range(group)] if group > 1 else [value]
        return found

    def _scored(self, first: Value, online: Online, mixed: Sequence[Sequence[Variable]]) -> None:
        """The scores of a tile, and their powers into shared memory."""
        k, tile = self.k, self.tile
        sums = [[k.variable(k.constant(0, self.sums)) for _ in range(tile.across)] for _ in range(tile.down)]
        self._summed(sums, self.plan.depth, self.query, self.key)
        columns = self._columns(tile.across)
        for i, line in enumerate(sums):
            row = self.down * tile.down + i
            query = self.around.first + row
            scores = [self.around.score(query, first + at, one.value) for at, one in zip(columns, line, strict=True)]
            powers, factor = online.taken(i, scores)
            for at, power in zip(columns, powers, strict=True):
                self.powers[at * self.query.pitch + row] = power
            for one in mixed[i]:
                one.value = one.value * factor

    def _mix(self, mixed: Sequence[Sequence[Variable]]) -> None:
        """Values of a tile, by powers."""
        self._summed(mixed, self.tile.keys, self.powers, self.value)

    def _give(self, online: Online, mixed: Sequence[Sequence[Variable]]) -> None:
        k, plan = self.k, self.plan
        result, begin, step = k.memory("result"), self.around.begin("result"), k.size("result.step")
        columns, group = self._columns(self.each), min(self._group(self.each), plan.wide)
        for i, line in enumerate(mixed):
            query, total = self.around.first + (self.down * self.tile.down + i), online.total(i)
            total = k.select(self.around.keys.equals(0), total.like(1), total)
            with k.when(query < self.around.queries):
                for first in range(0, self.each, group):
                    with k.when(columns[first] < plan.width):
                        given = [one.value / total for one in line[first : first + group]]
                        place = begin + query * k.size("result.row") + columns[first] * step
                        k.write(result, place, k.vector_of(given) if group > 1 else given[0])


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
