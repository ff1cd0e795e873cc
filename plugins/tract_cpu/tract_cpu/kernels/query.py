"""Attention of single queries, as in a step of decoding: lanes of vectors are numbers of keys and of values.

A task takes one query. Its products with as many keys as a vector has lanes are summed together, so that their scores
come out side by side; keys and values are read once, where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memories, Memory, Signature, Size

AT_ONCE: Final = 8
"""How many vectors are summed at once."""

FurtherFn: TypeAlias = "Callable[[Value, Value], list[Value]]"
"""``(first key, mask of those that there are) -> operands``, as vectors."""


@frozen
class QueryPlan:
    """Its fields are those of `AttentionPlan`, but that ``along`` is along the keys, not the queries.

    ``lanes``: of a vector. ``depth``, ``width``: how many vectors a key and a value take.
    """

    lanes: int
    depth: int
    width: int
    element: ElementType
    scores: Expression
    along: tuple[bool, ...]
    powers: Expression
    result: ElementType
    batch: int
    zeroes: bool = False

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "attention"

    @property
    def sums(self) -> ElementType:
        """The type in which products are summed."""
        return self.element.computed

    @property
    def vectors(self) -> tuple[int, int, int]:
        """Lanes of a vector; how many vectors a key and a value take."""
        return self.lanes, self.depth, self.width

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        further = self.scores.inputs[1:]
        return Signature.of(
            Size("keys"),
            Memory("query", self.element),
            Memory("key", self.element),
            Size("key_row"),
            Memory("value", self.element),
            Size("value_row"),
            Memories("further", further),
            Memory("result", self.result),
            Each.loop("batch", self.batch, 4 + len(further)),
        )

    def emit(self, k: Kernel) -> None:
        """Result = sum over j of share[j] * value[j]; share = softmax of scores(query * key[j], ...)."""
        taken, lanes = self.signature.taken(k), self.lanes
        single = SingleQuery(self, k, taken.size("keys"), (taken.size("key_row"), taken.size("value_row")))
        tensors = [*(taken.memory(one) for one in ("query", "key", "value")), *taken.memories("further")]
        # For each loop around: its size, and how far query, keys, values, further operands and result move.
        batch = [[one.size("size"), *one.sizes("strides")] for one in taken.each("batch")]
        with k.loop("task", k.end, k.begin) as task:
            number, places = task, [*tensors, taken.memory("result")]
            for size, *strides in reversed(batch):
                position = number % size
                number = number // size
                places = [place.at(position * stride) for place, stride in zip(places, strides, strict=True)]
            query, keys, values, *others, result = places

            def further(first: Value, mask: Value, others: Sequence[Buffer] = others) -> list[Value]:
                pairs = zip(others, self.along, strict=True)
                return [one.vector(first, lanes, mask) if along else one[0].splat(lanes) for one, along in pairs]

            single.compute((query, keys, values), further, result)


class SingleVectors(Protocol):
    """What is decided of a single query: fields of `QueryPlan`."""

    @property
    def scores(self) -> Expression:
        """What becomes of a product."""
        ...

    @property
    def powers(self) -> Expression:
        """Of a score and the largest one."""
        ...

    @property
    def sums(self) -> ElementType:
        """The type in which products are summed."""
        ...

    @property
    def vectors(self) -> tuple[int, int, int]:
        """Lanes of a vector; how many vectors a key and a value take."""
        ...

    @property
    def zeroes(self) -> bool:
        """Whether shares that are NaN count as 0."""
        ...


class SingleQuery:
    """The attention of one query while it is written."""

    def __init__(self, plan: SingleVectors, k: Kernel, keys: Value, rows: tuple[Value, Value]) -> None:
        """``keys``: how many there are; ``rows``: how far apart keys are, and values."""
        self.plan, self.k, self.keys = plan, k, keys
        self._key_row, self._value_row = rows
        self._lanes, self._depth, self._width = plan.vectors
        self._scores = k.scratch(plan.sums)

    def compute(self, factors: tuple[Buffer, Buffer, Buffer], further: FurtherFn, result: Buffer) -> None:
        """Write the mixed values of a query. ``further``: gives the other operands of the scores of some keys."""
        k, lanes, (query, keys, values) = self.k, self._lanes, factors
        largest = self._score(query, keys, further)
        total = k.variable(k.constant(0, self.plan.sums, lanes))
        with k.loop("power", self.keys, step=lanes) as key:
            power = self.plan.powers.compute([self._scores.vector(key, lanes), largest.splat(lanes)])
            power = where(k.mask(self.keys - key, lanes), power, power.like(0))
            self._scores.put(key, power)
            total.value = total.value + power
        whole = folded(total.value, lambda a, b: a + b)
        if self.plan.zeroes:
            with k.when(whole.differs(whole)), k.loop("zero", self.keys, step=lanes) as key:
                self._scores.put(key, power.like(0))
            whole = where(whole.equals(whole), whole, whole.like(0))
        share = where(whole.equals(0), whole, whole.like(1) / whole)  # it is 0 where there are no keys
        self._mix(values, share, result)

    def _score(self, query: Buffer, keys: Buffer, further: FurtherFn) -> Value:
        """Write the scores, those of a vector of keys at once. Returns the largest one."""
        k, plan, lanes = self.k, self.plan, self._lanes
        parts = [query.vector(place * lanes, lanes) for place in range(self._depth)]
        largest = k.variable(k.constant(float("-inf"), plan.sums, lanes))
        with k.loop("score", self.keys, step=lanes) as first:
            last, products = self.keys - 1, list[Value]()
            for lane in range(lanes):
                row = keys.at(k.smaller(first + lane, last) * self._key_row)
                found = row.vector(0, lanes) * parts[0]
                for place in range(1, self._depth):
                    found = row.vector(place * lanes, lanes).times_plus(parts[place], found)
                products.append(found)
            mask = k.mask(self.keys - first, lanes)
            operands = [rounded(_summed(k, products), plan.scores.inputs[0]), *further(first, mask)]
            score = plan.scores.compute(operands)
            self._scores.put(first, score)
            largest.value = where(mask & (score > largest.value), score, largest.value)
        return folded(largest.value, lambda a, b: where(a > b, a, b))

    def _mix(self, values: Buffer, share: Value, result: Buffer) -> None:
        """Write the sum of the values, as many vectors at once as surely fit the registers."""
        k, lanes = self.k, self._lanes
        zero = k.constant(0, self.plan.sums, lanes)
        for first in range(0, self._width, AT_ONCE):
            sums = {place: k.variable(zero) for place in range(first, min(first + AT_ONCE, self._width))}
            with k.loop("mix", self.keys) as key:
                row, power = values.at(key * self._value_row), self._scores[key].splat(lanes)
                for place, total in sums.items():
                    total.value = row.vector(place * lanes, lanes).times_plus(power, total.value)
            for place, total in sums.items():
                result.put(place * lanes, total.value * share)


def _summed(k: Kernel, vectors: Sequence[Value]) -> Value:
    """The sums of as many vectors as they have lanes, side by side."""
    found, lanes = list(vectors), len(vectors)
    even, odd = list(range(0, 2 * lanes, 2)), list(range(1, 2 * lanes, 2))
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [k.shuffled(a, b, even) + k.shuffled(a, b, odd) for a, b in pairs]
    return found[0]


def folded(vector: Value, join: Callable[[Value, Value], Value]) -> Value:
    """All lanes of a vector, joined two by two."""
    while vector.lanes:
        vector = join(*vector.halves())
    return vector
