"""The arguments of all kernels of a program, as one array of integers, which new sizes fill in microseconds.

A `Layout` is data, made once per program: which arguments are numbers, which are sizes with symbols in them, and which
are addresses. Each size is evaluated once, however many arguments are equal to it; everything else happens in whole
arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tract_core.dims import Dim, evaluate, symbols_of
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.kernels.control import COUNT, WORK, WORK_OF_STEPS, BeginPlan, CountPlan
from tract_cpu.lower.program import (
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
from tract_cpu.lower.views import Address, Kind, Storage
from tract_cpu.memory import ArenaPlan, plan_arena


@frozen
class Bound:
    """The arguments for certain sizes, but for what lies in the arena or is passed.

    ``arguments``: with offsets, in bytes, in the places of addresses. ``slots``: where each slot of the arena begins,
    in bytes, each aligned; the last number is how large it is. ``tasks``: of each native step; ``work``: of one call of
    each; ``times``: how often it is called. ``scratch``: bytes per thread. ``work_of_loops``: the most that loops do,
    `ENDLESS` where only a run tells.
    """

    arguments: Array
    slots: Array
    tasks: Array
    work: Array
    times: Array
    scratch: int
    work_of_loops: int


class Layout:
    """Where the arguments of the native steps of a program are, in order, and what they are."""

    def __init__(self, program: Program, inputs: int) -> None:
        """``inputs``: how many the model has."""
        self.steps = [step for step in program.steps if isinstance(step, NativeStep)]
        self.arena: ArenaPlan = plan_arena(program)
        self.begins: list[int] = []
        """For each native step, the place of its first argument."""
        self._dims: dict[Dim | Eventual, int] = {}
        self._which: list[int] = []
        self._fixed: list[tuple[int, int]] = []
        self._slots: list[tuple[int, int]] = []
        self._in_arguments: list[tuple[int, int, int]] = []
        self._in_passed: list[tuple[int, int]] = []
        self.passed: list[tuple[int, int]] = []
        """The places of addresses that only a run tells, and their numbers among these."""
        self._first = {Kind.INPUT: 0, Kind.OUTPUT: inputs, Kind.HOST: inputs + len(program.outputs)}
        hosted = sum(len(step.results) for step in program.steps if isinstance(step, HostStep))
        self._first[Kind.KEPT] = inputs + len(program.outputs) + hosted
        self._first[Kind.STATUS] = self._first[Kind.KEPT] + sum(len(one.tensors) for one in program.kept)
        self.passed_count = self._first[Kind.STATUS] + 1
        """How many addresses are passed. The last one is that of the status."""
        self.loops = len(program.loops)
        self.may_refuse = [STATUS in step.arguments for step in self.steps]
        constants = [one.__array_interface__["data"][0] for one in program.constants]
        self.numbers = _numbers(program)
        """For each step of the program, the number of the first native step from there on."""
        for step in self.steps:
            self.begins.append(len(self._which))
            for argument in step.arguments:
                self._add(argument, constants)
        self.in_arguments = _columns([(place, self.begins[number] + one) for place, number, one in self._in_arguments])
        """The places of addresses of arguments, and the places of these."""
        self.in_passed = _columns(self._in_passed)
        """The places of addresses of what is passed, and the numbers of that."""
        self._of_tasks = [self._number(step.tasks) for step in self.steps]
        self._of_scratch = [self._number(step.scratch) for step in self.steps]
        self._of_work = [self._number(step.work) for step in self.steps]
        self._of_times = [self._number(step.times) for step in self.steps]
        self._of_slots = [[self._number(size) for size in sizes] for sizes in self.arena.slots]
        self._stages = [program.stage_of([dim.size if isinstance(dim, Eventual) else dim]) for dim in self._dims]
        self._gather = np.array(self._which, np.int64)
        self._fix = _columns(self._fixed)
        self.in_arena = _columns(self._slots)

    def bind(self, symbols: Mapping[str, int], stage: int = 0) -> Bound:
        """The arguments for these values of the symbols. Raises DimError for a size that contradicts itself.

        ``stage``: that of the run which begins. What is only known later is 0, and has no place in this arena, as what
        was known before has none.
        """
        known = zip(self._dims, self._stages, strict=True)
        values = np.array([_value(dim, symbols) if since <= stage else 0 for dim, since in known], np.int64)
        arguments = values[self._gather] if len(values) else np.zeros(0, np.int64)
        places, addresses = self._fix
        arguments[places] += addresses
        slots = zip(self._of_slots, self.arena.stages, strict=True)
        # Sizes of what does not run, as a branch that is not taken, may be below 0.
        sizes = [max([0, *(int(values[one]) for one in slot)]) if since == stage else 0 for slot, since in slots]
        padded = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        scratch = max([0, *(int(values[one]) for one in self._of_scratch)])
        of_steps = (self._of_tasks, self._of_work, self._of_times)
        tasks, work, times = (values[np.array(one, np.int64)] for one in of_steps)
        work, times = np.maximum(work, 0), np.maximum(times, 0)
        return Bound(arguments, np.cumsum([0, *padded]), tasks, work, times, scratch, self._work_of_loops(arguments))

    def _work_of_loops(self, arguments: Array) -> int:
        """As if each loop were inside of all others."""
        if any(isinstance(step.kernel, CountPlan) for step in self.steps):
            return ENDLESS
        begins = [begin for begin, step in zip(self.begins, self.steps, strict=True) if _begins_loop(step)]
        each = sum(max(int(arguments[begin + WORK]), 0) + WORK_OF_STEPS for begin in begins)
        return each * prod(max(int(arguments[begin + COUNT]), 1) for begin in begins)

    def number(self, storage: Storage) -> int:
        """The number of a storage among those whose addresses are passed: inputs, outputs, what the host gives."""
        return self._first[storage.kind] + storage.number

    def _add(self, argument: Argument, constants: Sequence[int]) -> None:
        place = len(self._which)
        if isinstance(argument, StepNumber):
            argument = self.numbers[argument.place]
        elif isinstance(argument, ArgumentPlace):
            self._in_arguments.append((place, self.numbers[argument.place], argument.argument))
            argument = 0
        elif isinstance(argument, PassedPlace):
            self._in_passed.append((place, self.number(argument.storage)))
            argument = 0
        if not isinstance(argument, Address):
            self._which.append(self._number(argument))
            return
        storage = argument.storage
        inside = self.arena.offset_of[storage.number] if storage.kind is Kind.ARENA else 0
        self._which.append(self._number(argument.offset + inside))
        if storage.kind is Kind.CONSTANT:
            self._fixed.append((place, constants[storage.number]))
        elif storage.kind is Kind.ARENA:
            self._slots.append((place, self.arena.slot_of[storage.number]))
        else:
            self.passed.append((place, self.number(storage)))

    def _number(self, dim: Dim | Eventual) -> int:
        return self._dims.setdefault(dim, len(self._dims))


def _begins_loop(step: NativeStep) -> bool:
    return isinstance(step.kernel, BeginPlan)


def _value(dim: Dim | Eventual, symbols: Mapping[str, int]) -> int:
    if not isinstance(dim, Eventual):
        return evaluate(dim, symbols)
    return evaluate(dim.size, symbols) if symbols_of(dim.size) <= symbols.keys() else ENDLESS


def _numbers(program: Program) -> list[int]:
    numbers, count = list[int](), 0
    for step in program.steps:
        numbers.append(count)
        count += isinstance(step, NativeStep)
    return [*numbers, count]


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[Any, Any]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
