"""Attention of single queries, as in a step of decoding: lanes of vectors are numbers of keys and of values.

A task takes one query. Its products with as many keys as a vector has lanes are summed together, so that their scores
come out side by side; keys and values are read once, where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

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

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "attention"

    @property
    def sums(self) -> ElementType:
        """The type in which products are summed."""
        return self.element.computed

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
        query = _Query(self, k)
        with k.loop("task", k.end, k.begin) as task:
            query.task(task)


class _Query:
    """The kernel while it is written. ``keys``: how many there are."""

    def __init__(self, plan: QueryPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self.keys = taken.size("keys")
        self._query = taken.memory("query")
        self._key, self._key_row = taken.memory("key"), taken.size("key_row")
        self._value, self._value_row = taken.memory("value"), taken.size("value_row")
        self._further = taken.memories("further")
        self._result = taken.memory("result")
        # For each loop around: its size, and how far query, keys, values, further operands and result move.
        self._batch = [[one.size("size"), *one.sizes("strides")] for one in taken.each("batch")]
        self._scores = k.scratch(plan.sums)

    def task(self, task: Value) -> None:
        """One query."""
        k, lanes = self.k, self.plan.lanes
        places = [self._query, self._key, self._value, *self._further, self._result]
        number = task
        for size, *strides in reversed(self._batch):
            position = number % size
            number = number // size
            places = [place.at(position * stride) for place, stride in zip(places, strides, strict=True)]
        query, keys, values, *further, result = places
        largest = self._score(query, keys, further)
        total = k.variable(k.constant(0, self.plan.sums, lanes))
        with k.loop("power", self.keys, step=lanes) as key:
            power = self.plan.powers.compute([self._scores.vector(key, lanes), largest.splat(lanes)])
            power = where(k.mask(self.keys - key, lanes), power, power.like(0))
            self._scores.put(key, power)
            total.value = total.value + power
        whole = _folded(total.value, lambda a, b: a + b)
        share = where(whole.equals(0), whole, whole.like(1) / whole)  # it is 0 where there are no keys
        self._mix(values, share, result)

    def _score(self, query: Buffer, keys: Buffer, further: Sequence[Buffer]) -> Value:
        """Write the scores, those of a vector of keys at once. Returns the largest one."""
        k, plan, lanes = self.k, self.plan, self.plan.lanes
        parts = [query.vector(place * lanes, lanes) for place in range(plan.depth)]
        largest = k.variable(k.constant(float("-inf"), plan.sums, lanes))
        with k.loop("score", self.keys, step=lanes) as first:
            last, products = self.keys - 1, list[Value]()
            for lane in range(lanes):
                row = keys.at(k.smaller(first + lane, last) * self._key_row)
                found = row.vector(0, lanes) * parts[0]
                for place in range(1, plan.depth):
                    found = row.vector(place * lanes, lanes).times_plus(parts[place], found)
                products.append(found)
            mask = k.mask(self.keys - first, lanes)
            operands = [rounded(_summed(k, products), plan.scores.inputs[0])]
            for memory, along in zip(further, plan.along, strict=True):
                operands.append(memory.vector(first, lanes, mask) if along else memory[0].splat(lanes))
            score = plan.scores.compute(operands)
            self._scores.put(first, score)
            largest.value = where(mask & (score > largest.value), score, largest.value)
        return _folded(largest.value, lambda a, b: where(a > b, a, b))

    def _mix(self, values: Buffer, share: Value, result: Buffer) -> None:
        """Write the sum of the values, as many vectors at once as surely fit the registers."""
        k, plan, lanes = self.k, self.plan, self.plan.lanes
        zero = k.constant(0, plan.sums, lanes)
        for first in range(0, plan.width, AT_ONCE):
            sums = {place: k.variable(zero) for place in range(first, min(first + AT_ONCE, plan.width))}
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


def _folded(vector: Value, join: Callable[[Value, Value], Value]) -> Value:
    """All lanes of a vector, joined two by two."""
    while vector.lanes:
        vector = join(*vector.halves())
    return vector
