"""The arguments of all kernels of a program, as arrays of integers, which new sizes fill in microseconds.

An `ArgumentLayout` is data, made once per program (`lay_arguments`): which arguments are numbers, which are sizes with
symbols in them, and which are addresses. It has a `Section` for each stage of a run, as sizes that come up in its
middle are bound for the steps behind. Each size is evaluated once, however many arguments of a section are equal to it;
everything else happens in whole arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from tract_llvm.program.storages import Kind, Storage

from tract_core.dims import evaluate, symbols_of
from tract_core.frozen import frozen
from tract_core.later import Later
from tract_core.limits import MAX_SIZE
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.program.eventual import ENDLESS, Eventual

if TYPE_CHECKING:
    from tract_core.compile.arena_plan import ArenaPlan
    from tract_core.dims import Dim
    from tract_core.plugins.keys import Array

WORK_FOR_THREADS: Final = 1 << 20
"""How much work others have to take off a run so that they are woken: that takes as long as so many products."""

WORK_TO_SHARE: Final = 1 << 14
"""The same for one step, which is offered to those that are awake already."""


@frozen
class Bound:
    """The arguments of one section for certain sizes, but for where arrays and slots begin, and what is passed.

    ``arguments``: with offsets, in bytes, in the places of addresses. ``slots``: where its slots of the arena begin, in
    bytes, each aligned; the last number is how large they are together. ``tasks``: of each native step; ``work``: of
    one call of each; ``times``: how often it is called; ``fuel``: what a call takes of `FULL`. ``scratch``: bytes per
    thread. ``fuel_of_loops``: the most that loops take besides their steps, `ENDLESS` where only a run tells.
    """

    arguments: Array
    slots: list[int]
    tasks: Array
    work: Array
    times: Array
    fuel: Array
    scratch: int
    fuel_of_loops: int

    @property
    def scratch_apart(self) -> int:
        """Bytes from the scratch memory of one thread to that of the next one."""
        return -(-self.scratch // ALIGNMENT) * ALIGNMENT

    def parts(self, threads: int) -> Array | None:
        """In how many parts each step is shared: 1 where that takes longer; ``None`` where nobody is worth waking."""
        gain = self.work - self.work // threads - WORK_TO_SHARE
        shared = (gain >= 0) & (self.tasks > 1)
        if threads == 1 or not shared.any() or (gain * self.times)[shared].sum() < WORK_FOR_THREADS:
            return None
        return np.where(shared, np.minimum(self.tasks, threads), 1)


Places: TypeAlias = "tuple[Array, Array]"
"""Places of arguments, and for each the number of what it is about."""


@frozen
class Section:
    """The arguments of the native steps of one stage, from the number ``first`` to before ``last``.

    ``begins``: for each step, the place of its first argument. ``sizes``: each that an argument may be equal to;
    ``known``: which of them are by now; ``which``: for each argument, the number of its size. ``in_constants``: the
    places of addresses in arrays that are part of the program, and the numbers of these; ``in_arena``: those of
    addresses in the arena, and the slots that they are in; ``in_arguments``: those of addresses of arguments, and the
    places of these; ``in_passed``: those of addresses of what is passed, and the numbers of that; ``passed``: the
    places of addresses that only a run tells, and their numbers among these.

    ``of_steps``: the numbers of the sizes that say how many tasks, how much work, how many times and how many bytes of
    scratch each step has; ``weights``, ``needs_work``: of each. ``counts``: the places of the counts of loops;
    ``loop_fuel``: what an iteration takes; ``is_endless``: whether only a run tells how many there are. ``slots``: the
    slots of the arena whose sizes are known from this stage on; ``of_slots``: the numbers of these sizes.
    """

    first: int
    last: int
    begins: tuple[int, ...]
    sizes: tuple[Dim | Eventual, ...]
    known: tuple[bool, ...]
    which: Array
    in_constants: Places
    in_arena: Places
    in_arguments: Places
    in_passed: Places
    passed: tuple[tuple[int, int], ...]
    of_steps: tuple[Array, Array, Array, Array]
    weights: Array
    needs_work: Array
    counts: tuple[int, ...]
    loop_fuel: int
    is_endless: bool
    slots: tuple[int, ...]
    of_slots: tuple[tuple[int, ...], ...]

    def bind(self, symbols: Mapping[str, int]) -> Bound:
        """The arguments for these values of the symbols. Raises DimError for a size that contradicts itself.

        What is only known later is 0, and belongs to no step here.
        """
        numbers = [_value(dim, symbols) if known else 0 for dim, known in zip(self.sizes, self.known, strict=True)]
        values = np.array([_bounded(one) for one in numbers], np.int64)
        arguments = values[self.which]
        # Sizes of what does not run, as a branch that is not taken, may be below 0.
        sizes = [max(0, *(numbers[one] for one in slot)) if slot else 0 for slot in self.of_slots]
        slots = accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0)
        tasks, work, times, _ = (values[one] for one in self.of_steps)
        work, times = np.maximum(work, 0), np.maximum(times, 0)
        scratch = max((numbers[int(one)] for one in self.of_steps[3]), default=0)
        tasks = np.where(self.needs_work & (work == 0), np.minimum(tasks, 0), tasks)
        fuel = work * self.weights + np.maximum(tasks, 0)
        return Bound(arguments, list(slots), tasks, work, times, fuel, max(scratch, 0), self._fuel_of_loops(arguments))

    def _fuel_of_loops(self, arguments: Array) -> int:
        """As if each loop were inside of all others."""
        if self.is_endless:
            return ENDLESS
        counts = [max(int(arguments[place]), 1) for place in self.counts]
        return len(counts) * self.loop_fuel * prod(counts)


@frozen
class ArgumentLayout:
    """Where the arguments of the native steps of a program are, in order, and what they are.

    ``arena``: where tensors lie, for who looks at single ones; ``stages``: for each of its slots, that of the run from
    which on its size is known. ``constants``: the arrays that are part of the program; ``loops``: how many it has.
    ``firsts``: the number of the first address of each kind among those that are passed, of which there are
    ``passed_count``; the last one is that of the status. ``numbers``: for each step of the program, the number of the
    first native step from there on. ``may_refuse``: whether the kernel of each native step may. ``sections``: by the
    stages of a run.
    """

    arena: Later[ArenaPlan]
    stages: tuple[int, ...]
    constants: tuple[Array, ...]
    loops: int
    firsts: Mapping[Kind, int]
    passed_count: int
    numbers: tuple[int, ...]
    may_refuse: tuple[bool, ...]
    sections: tuple[Section, ...]

    @property
    def first_kept(self) -> int:
        """The number of the first tensor that stays from turn to turn, among what is passed."""
        return self.firsts[Kind.KEPT]

    def bind(self, symbols: Mapping[str, int], stage: int = 0) -> Bound:
        """The arguments of the section of a stage, as `Section.bind` does."""
        return self.sections[stage].bind(symbols)

    def number(self, storage: Storage) -> int:
        """The number of a storage among those whose addresses are passed: inputs, outputs, what the host gives."""
        return self.firsts[storage.kind] + storage.number


def _value(dim: Dim | Eventual, symbols: Mapping[str, int]) -> int:
    if not isinstance(dim, Eventual):
        return evaluate(dim, symbols)
    return evaluate(dim.size, symbols) if symbols_of(dim.size) <= symbols.keys() else ENDLESS


def _bounded(value: int) -> int:
    """What 64 bits hold. Only strides of tensors without elements are beyond that, and sizes of what does not run."""
    return max(-MAX_SIZE, min(value, MAX_SIZE))
