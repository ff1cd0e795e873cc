"""Loops whose state is multiplied with weights: all iterations in one kernel.

A block has some rows of the batch, which no other block needs, and all of the weights in its shared memory. There, the
state lies twice: an iteration reads it from one place and writes it to the other. So a barrier for each iteration is
all that threads wait for.

Source: Diamos et al., "Persistent RNNs: Stashing Recurrent Weights On-Chip", with shared memory for registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import rounded
from tract_llvm.fuse.steps import Fold, Load, RowStep
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter

_WAYS = ("row", "unit", "step")
"""What tensors move along: rows of the batch, units of the state, and iterations."""


def moving(name: str, element: ElementType) -> tuple[Parameter, ...]:
    """A tensor, and how far apart its elements are along all three ways."""
    return (Parameter(name, element), *(Parameter(f"{name}.{way}") for way in _WAYS))


@frozen
class SumOf:
    """What is loaded: the sum of products of a state and weights, which have a number."""

    number: int


@frozen
class StateOf:
    """What is loaded: a state, as the iteration before left it."""

    state: int


@frozen
class TensorOf:
    """What is loaded: an element of a tensor, which has a number."""

    tensor: int
    element: ElementType


Source = SumOf | StateOf | TensorOf


@frozen
class RecurrencePlan:
    """All iterations for ``rows`` rows of the batch in each block.

    ``hidden``: units of a state. ``sums``: how many there are for each unit, each with weights of its own. ``parts``:
    how many neighbouring lanes sum for one. ``multiplied``: which state is. ``sources``: what is loaded, by its number
    in ``steps``, which compute the values of a unit. ``states``: those of the states, by their numbers; ``outputs``:
    those that are written, and the types of the tensors.
    """

    hidden: int
    sums: int
    rows: int
    parts: int
    multiplied: int
    sources: tuple[Source, ...]
    steps: tuple[RowStep, ...]
    states: tuple[int, ...]
    outputs: tuple[tuple[int, ElementType], ...]

    name = "recurrence"

    @property
    def threads(self) -> int:
        """Of a block: some lanes for each unit."""
        return -(-self.hidden * self.parts // WARP) * WARP

    @property
    def pitch(self) -> int:
        """How far apart the weights of two sums are in shared memory: so that no two lanes of a warp meet in a bank."""
        return self.hidden + (self.parts - self.hidden) % WARP

    @property
    def shared_bytes(self) -> int:
        """Of shared memory: the weights, and the states, the multiplied one twice."""
        return F32.bytes * (
            self.sums * self.hidden * self.pitch + (len(self.states) + 1) * self.rows * self.hidden
        ) + 128 * (len(self.states) + 1)

    @property
    def tensors(self) -> tuple[TensorOf, ...]:
        """Those that are loaded, by their numbers."""
        return tuple(one for one in self.sources if isinstance(one, TensorOf))

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many iterations and rows; weights; each state at first and at last; what is read and written."""
        found = [Parameter("count"), Parameter("size")]
        for number in range(self.sums):
            name = f"weights{number}"
            found += [Parameter(name, F32), Parameter(f"{name}.unit"), Parameter(f"{name}.depth")]
        for number in range(len(self.states)):
            found += [*moving(f"first{number}", F32), *moving(f"last{number}", F32)]
        for one in self.tensors:
            found += moving(f"tensor{one.tensor}", one.element)
        for number, (_, element) in enumerate(self.outputs):
            found += moving(f"output{number}", element)
        return tuple(found)

    def emit(self, k: Kernel) -> None:
        """state[t + 1][b, j] = steps(sums of state[t][b, d] * weights[s][j, d] over d, tensors[t][b, j], ...)"""
        unit, part = k.divided(k.thread(), k.index(self.parts))
        own = part.equals(0) & (unit < self.hidden)
        block = _Block(self, k, unit, part)
        block.bring_weights()
        with k.when(own):
            for row in range(self.rows):
                block.begin(row)
        k.barrier()
        with k.loop("time", k.size("count")) as time:
            sums = block.sums(time)
            with k.when(own):
                for row in range(self.rows):
                    block.give(row, sums[row], time)
            k.barrier()
        with k.when(own):
            for row in range(self.rows):
                block.end(row)


class _Block:
    """The memory that the threads of a block share. A thread has a ``unit``, and a ``part`` of its sums."""

    def __init__(self, plan: RecurrencePlan, k: Kernel, unit: Value, part: Value) -> None:
        self.plan, self.k, self.part = plan, k, part
        self.unit = k.select(unit < plan.hidden, unit, k.index(0))
        self.weights = k.shared(F32, plan.sums * plan.hidden * plan.pitch)
        self.size = plan.rows * plan.hidden
        self.states: list[Buffer] = [
            k.shared(F32, self.size * (2 if number == plan.multiplied else 1)) for number in range(len(plan.states))
        ]

    def bring_weights(self) -> None:
        """Weights into shared memory, all threads together."""
        k, plan = self.k, self.plan
        with k.loop("weight", plan.hidden * plan.hidden, k.thread(), plan.threads) as number:
            unit, depth = k.divided(number, k.index(plan.hidden))
            for one in range(plan.sums):
                name = f"weights{one}"
                place = unit * k.size(f"{name}.unit") + depth * k.size(f"{name}.depth")
                self.weights[(unit + one * plan.hidden) * plan.pitch + depth] = k.memory(name)[place]

    def begin(self, row: int) -> None:
        """The states at first: zeros in rows that there are not."""
        there, at = self._at(row)
        for number, buffer in enumerate(self.states):
            value = self.k.memory(f"first{number}")[self._place(f"first{number}", at, None)]
            buffer[self.unit + row * self.plan.hidden] = self.k.select(there, value, value.like(0))

    def sums(self, time: Value) -> list[list[Value]]:
        """For each row, all sums of products, which all lanes of a unit have."""
        k, plan, state = self.k, self.plan, self.states[self.plan.multiplied]
        begin = self._now(time)
        sums = [[k.variable(k.constant(0, F32)) for _ in range(plan.sums)] for _ in range(plan.rows)]
        with k.loop("depth", plan.hidden, self.part, plan.parts) as depth:
            values = [state[begin + row * plan.hidden + depth] for row in range(plan.rows)]
            for one in range(plan.sums):
                weight = self.weights[(self.unit + one * plan.hidden) * plan.pitch + depth]
                for row, value in enumerate(values):
                    sums[row][one].value = k.fma(value, weight, sums[row][one].value)
        return [[self._of_all_parts(one.value) for one in line] for line in sums]

    def give(self, row: int, sums: Sequence[Value], time: Value) -> None:
        """What an iteration computes of a row: the states behind it, and what is written."""
        plan, (there, at) = self.plan, self._at(row)
        values = list[Value]()
        for step in plan.steps:
            values.append(
                self._loaded(plan.sources[step.tensor], row, sums, (at, time))
                if isinstance(step, Load)
                else _applied(step, values)
            )
        for number, value in enumerate(plan.states):
            begin = self._now(time + 1) if number == plan.multiplied else self.k.index(0)
            self.states[number][begin + self.unit + row * plan.hidden] = values[value]
        with self.k.when(there):
            for number, (value, _) in enumerate(plan.outputs):
                name = f"output{number}"
                self.k.memory(name)[self._place(name, at, time)] = values[value]

    def end(self, row: int) -> None:
        """The states at last."""
        there, at = self._at(row)
        with self.k.when(there):
            for number, buffer in enumerate(self.states):
                now = self._now(self.k.size("count")) if number == self.plan.multiplied else self.k.index(0)
                name = f"last{number}"
                self.k.memory(name)[self._place(name, at, None)] = buffer[now + self.unit + row * self.plan.hidden]

    def _at(self, row: int) -> tuple[Value, Value]:
        """Whether there is a row of the block, and which it is of the batch; the first one where there is not."""
        number = self.k.block() * self.plan.rows + row
        there = number < self.k.size("size")
        return there, self.k.select(there, number, number.like(0))

    def _place(self, name: str, at: Value, time: Value | None) -> Value:
        found = at * self.k.size(f"{name}.row") + self.unit * self.k.size(f"{name}.unit")
        return found if time is None else found + time * self.k.size(f"{name}.step")

    def _now(self, time: Value) -> Value:
        """Where the multiplied state begins that an iteration reads."""
        return (time & 1) * self.size

    def _of_all_parts(self, total: Value) -> Value:
        distance = self.plan.parts // 2
        while distance:
            total = total + self.k.shuffled_xor(total, distance)
            distance //= 2
        return total

    def _loaded(self, source: Source, row: int, sums: Sequence[Value], at: tuple[Value, Value]) -> Value:
        if isinstance(source, SumOf):
            return sums[source.number]
        if isinstance(source, TensorOf):
            name = f"tensor{source.tensor}"
            return self.k.memory(name)[self._place(name, *at)]
        begin = self._now(at[1]) if source.state == self.plan.multiplied else self.k.index(0)
        return self.states[source.state][begin + self.unit + row * self.plan.hidden]


def _applied(step: RowStep, values: Sequence[Value]) -> Value:
    assert not isinstance(step, Load | Fold), "nothing is reduced here"
    return rounded(step.emit(step.op, *(values[one] for one in step.operands)), step.result)
