"""The arguments of all kernels of a program, as arrays of integers, which new sizes fill in microseconds.

An `ArgumentLayout` is data, made once per program: which arguments are numbers, which are sizes with symbols in them,
and which are addresses. It has a `Section` for each stage of a run, as sizes that come up in its middle are bound for
the steps behind. Each size is evaluated once, however many arguments of a section are equal to it; everything else
happens in whole arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from tract_llvm.program.views import Address, Kind, Storage

from tract_core.compile.arena import ArenaPlan
from tract_core.dims import Dim, evaluate, symbols_of
from tract_core.frozen import frozen
from tract_core.limits import MAX_SIZE
from tract_core.plugins.keys import Array
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.kernels.control import COUNT, FUEL_OF_ITERATION, BeginPlan, CountPlan
from tract_cpu.program.program import (
    ENDLESS,
    STATUS,
    Argument,
    ArgumentPlace,
    Eventual,
    HostStep,
    NativeStep,
    PassedPlace,
    Program,
    StepNumber,
)


@frozen
class Bound:
    """The arguments of one section for certain sizes, but for what lies in the arena or is passed.

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


class ArgumentLayout:
    """Where the arguments of the native steps of a program are, in order, and what they are."""

    def __init__(self, program: Program, arena: ArenaPlan, inputs: int) -> None:
        """``inputs``: how many the model has."""
        self.steps = [step for step in program.steps if isinstance(step, NativeStep)]
        self.arena = arena
        self._first = {Kind.INPUT: 0, Kind.OUTPUT: inputs, Kind.HOST: inputs + len(program.outputs)}
        hosted = sum(len(step.results) for step in program.steps if isinstance(step, HostStep))
        self.first_kept = self._first[Kind.KEPT] = inputs + len(program.outputs) + hosted
        """The number of the first tensor that stays from turn to turn, among what is passed."""
        self._first[Kind.STATUS] = self._first[Kind.KEPT] + sum(len(one.tensors) for one in program.kept)
        self.passed_count = self._first[Kind.STATUS] + 1
        """How many addresses are passed. The last one is that of the status."""
        self.loops = len(program.loops)
        self.may_refuse = [STATUS in step.arguments for step in self.steps]
        self.constants = [one.__array_interface__["data"][0] for one in program.constants]
        """Where the arrays are that are part of the program."""
        self.numbers = _numbers(program)
        """For each step of the program, the number of the first native step from there on."""
        ends = [self.numbers[stage.place] for stage in program.stages]
        firsts = zip([0, *ends], [*ends, len(self.steps)], strict=True)
        self.sections = [Section(self, program, stage, *one) for stage, one in enumerate(firsts)]

    def bind(self, symbols: Mapping[str, int], stage: int = 0) -> Bound:
        """The arguments of the section of a stage, for these values of the symbols.

        Raises DimError for a size that contradicts itself. What is only known later is 0, and belongs to no step here.
        """
        return self.sections[stage].bind(symbols)

    def number(self, storage: Storage) -> int:
        """The number of a storage among those whose addresses are passed: inputs, outputs, what the host gives."""
        return self._first[storage.kind] + storage.number


class Section:
    """The arguments of the native steps of one stage, from the number ``first`` to before ``last``."""

    def __init__(self, layout: ArgumentLayout, program: Program, stage: int, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.begins: list[int] = []
        """For each step, the place of its first argument."""
        self._layout = layout
        self._dims: dict[Dim | Eventual, int] = {}
        self._which: list[int] = []
        self._fixed: list[tuple[int, int]] = []
        self._slots: list[tuple[int, int]] = []
        self._in_arguments: list[tuple[int, int, int]] = []
        self._in_passed: list[tuple[int, int]] = []
        self.passed: list[tuple[int, int]] = []
        """The places of addresses that only a run tells, and their numbers among these."""
        steps = layout.steps[first:last]
        for step in steps:
            self.begins.append(len(self._which))
            for argument in step.arguments:
                self._add(argument)
        arguments = [(place, self.begins[number - first] + one) for place, number, one in self._in_arguments]
        self.in_arguments = _columns(arguments)
        """The places of addresses of arguments, and the places of these."""
        self.in_passed = _columns(self._in_passed)
        """The places of addresses of what is passed, and the numbers of that."""
        self._of_steps: list[Array] = [
            np.array([self._number(dim) for dim in dims], np.int64)
            for dims in zip(*((step.tasks, step.work, step.times, step.scratch) for step in steps), strict=True)
        ] or [np.zeros(0, np.int64)] * 4
        self._weights = np.array([step.weight for step in steps], np.float64)
        self._needs_work = np.array([step.needs_work for step in steps], bool)
        self._loops = [begin for begin, step in zip(self.begins, steps, strict=True) if _begins_loop(step)]
        self._is_endless = any(isinstance(step.kernel, CountPlan) for step in steps)
        self.slots = [slot for slot, since in enumerate(layout.arena.stages) if since == stage]
        """The slots of the arena whose sizes are known from this stage on."""
        self._of_slots = [[self._number(size) for size in layout.arena.slots[slot]] for slot in self.slots]
        since = (program.stage_of([dim.size if isinstance(dim, Eventual) else dim]) for dim in self._dims)
        self._is_known = [one <= stage for one in since]
        self._gather = np.array(self._which, np.int64)
        self.in_constants = _columns(self._fixed)
        """The places of addresses in arrays that are part of the program, and where these begin."""
        self.in_arena = _columns(self._slots)
        """The places of addresses in the arena, and the slots that they are in."""

    def bind(self, symbols: Mapping[str, int]) -> Bound:
        """The arguments for these values of the symbols. Raises DimError for a size that contradicts itself."""
        numbers = [_value(dim, symbols) if known else 0 for dim, known in zip(self._dims, self._is_known, strict=True)]
        values = np.array([_bounded(one) for one in numbers], np.int64)
        arguments = values[self._gather]
        places, addresses = self.in_constants
        arguments[places] += addresses
        # Sizes of what does not run, as a branch that is not taken, may be below 0.
        sizes = [max(0, *(numbers[one] for one in slot)) if slot else 0 for slot in self._of_slots]
        slots = accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0)
        tasks, work, times, _ = (values[one] for one in self._of_steps)
        work, times = np.maximum(work, 0), np.maximum(times, 0)
        scratch = max((numbers[int(one)] for one in self._of_steps[3]), default=0)
        tasks = np.where(self._needs_work & (work == 0), np.minimum(tasks, 0), tasks)
        fuel = work * self._weights + np.maximum(tasks, 0)
        return Bound(arguments, list(slots), tasks, work, times, fuel, max(scratch, 0), self._fuel_of_loops(arguments))

    def _fuel_of_loops(self, arguments: Array) -> int:
        """As if each loop were inside of all others."""
        if self._is_endless:
            return ENDLESS
        counts = [max(int(arguments[begin + COUNT]), 1) for begin in self._loops]
        return len(counts) * FUEL_OF_ITERATION * prod(counts)

    def _add(self, argument: Argument) -> None:
        layout, place = self._layout, len(self._which)
        if isinstance(argument, StepNumber):
            argument = layout.numbers[argument.place]
        elif isinstance(argument, ArgumentPlace):
            self._in_arguments.append((place, layout.numbers[argument.place], argument.argument))
            argument = 0
        elif isinstance(argument, PassedPlace):
            self._in_passed.append((place, layout.number(argument.storage)))
            argument = 0
        if not isinstance(argument, Address):
            self._which.append(self._number(argument))
            return
        storage = argument.storage
        inside = layout.arena.offset_of[storage.number] if storage.kind is Kind.ARENA else 0
        self._which.append(self._number(argument.offset + inside))
        if storage.kind is Kind.CONSTANT:
            self._fixed.append((place, layout.constants[storage.number]))
        elif storage.kind is Kind.ARENA:
            self._slots.append((place, layout.arena.slot_of[storage.number]))
        else:
            self.passed.append((place, layout.number(storage)))

    def _number(self, dim: Dim | Eventual) -> int:
        return self._dims.setdefault(dim, len(self._dims))


def _begins_loop(step: NativeStep) -> bool:
    return isinstance(step.kernel, BeginPlan)


def _value(dim: Dim | Eventual, symbols: Mapping[str, int]) -> int:
    if not isinstance(dim, Eventual):
        return evaluate(dim, symbols)
    return evaluate(dim.size, symbols) if symbols_of(dim.size) <= symbols.keys() else ENDLESS


def _bounded(value: int) -> int:
    """What 64 bits hold. Only strides of tensors without elements are beyond that, and sizes of what does not run."""
    return max(-MAX_SIZE, min(value, MAX_SIZE))


def _numbers(program: Program) -> list[int]:
    numbers, count = list[int](), 0
    for step in program.steps:
        numbers.append(count)
        count += isinstance(step, NativeStep)
    return [*numbers, count]


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[Any, Any]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
