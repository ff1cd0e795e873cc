"""Which arguments the native steps of a program have: what `binding` fills for the sizes of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tract_llvm.program.storages import Address, Kind

from tract_core.dims import TDim
from tract_core.later import already
from tract_cpu.binding import ArgumentLayout, Places, Section
from tract_cpu.kernels.control import COUNT, FUEL_OF_ITERATION, BeginPlan, CountPlan
from tract_cpu.program.eventual import Eventual
from tract_cpu.program.program import (
    STATUS,
    Argument,
    ArgumentPlace,
    HostStep,
    NativeStep,
    PassedPlace,
    Program,
    StepNumber,
)

if TYPE_CHECKING:
    from tract_core.compile.arena_plan import ArenaPlan
    from tract_core.dims import Dim
    from tract_core.plugins.keys import Array


_SIZES: Final = (int, TDim)


def native_steps(program: Program) -> list[NativeStep]:
    """The native steps of a program, in order."""
    return [step for step in program.steps if isinstance(step, NativeStep)]


def argument_layout(program: Program, arena: ArenaPlan, inputs: int) -> ArgumentLayout:
    """Where the arguments of the native steps are. ``inputs``: how many the model has."""
    steps, numbers = native_steps(program), _numbers(program)
    outputs = len(program.outputs)
    hosted = sum(len(step.results) for step in program.steps if isinstance(step, HostStep))
    kept = sum(len(one.tensors) for one in program.kept)
    firsts = {Kind.INPUT: 0, Kind.OUTPUT: inputs, Kind.HOST: inputs + outputs, Kind.KEPT: inputs + outputs + hosted}
    firsts[Kind.STATUS] = firsts[Kind.KEPT] + kept
    ends = [numbers[stage.place] for stage in program.stages]
    parts = zip([0, *ends], [*ends, len(steps)], strict=True)
    return ArgumentLayout(
        arena=already(arena),
        stages=arena.stages,
        constants=program.constants,
        loops=len(program.loops),
        firsts=firsts,
        passed_count=firsts[Kind.STATUS] + 1,
        numbers=numbers,
        may_refuse=tuple(STATUS in step.arguments for step in steps),
        sections=tuple(
            _Section(program, arena, firsts, numbers, stage).section(steps, first, last)
            for stage, (first, last) in enumerate(parts)
        ),
    )


class _Section:
    """The arguments of one stage, as they are collected."""

    def __init__(
        self, program: Program, arena: ArenaPlan, firsts: dict[Kind, int], numbers: Sequence[int], stage: int
    ) -> None:
        self._program, self._arena, self._firsts, self._numbers, self._stage = program, arena, firsts, numbers, stage
        self._sizes: dict[Dim | Eventual, int] = {}
        self._which: list[int] = []
        self._fixed: list[tuple[int, int]] = []
        self._slots: list[tuple[int, int]] = []
        self._in_arguments: list[tuple[int, int, int]] = []
        self._in_passed: list[tuple[int, int]] = []
        self._passed: list[tuple[int, int]] = []

    def section(self, every: Sequence[NativeStep], first: int, last: int) -> Section:
        """That of the steps from the number ``first`` to before ``last``."""
        begins, steps = list[int](), every[first:last]
        for step in steps:
            begins.append(len(self._which))
            for argument in step.arguments:
                self._add(argument)
        arguments = [(place, begins[number - first] + one) for place, number, one in self._in_arguments]
        slots = [slot for slot, since in enumerate(self._arena.stages) if since == self._stage]
        tasks, work, times, scratch = (
            np.array([self._number(dim) for dim in dims], np.int64)
            for dims in (
                [step.tasks for step in steps],
                [step.work for step in steps],
                [step.times for step in steps],
                [step.scratch for step in steps],
            )
        )
        of_slots = tuple(tuple(self._number(size) for size in self._arena.slots[slot]) for slot in slots)
        loops = [begin for begin, step in zip(begins, steps, strict=True) if isinstance(step.kernel, BeginPlan)]
        return Section(
            first=first,
            last=last,
            begins=tuple(begins),
            sizes=tuple(self._sizes),
            known=tuple(self._is_known(dim) for dim in self._sizes),
            which=np.array(self._which, np.int64),
            in_constants=_columns(self._fixed),
            in_arena=_columns(self._slots),
            in_arguments=_columns(arguments),
            in_passed=_columns(self._in_passed),
            passed=tuple(self._passed),
            of_steps=(tasks, work, times, scratch),
            weights=np.array([step.weight for step in steps], np.float64),
            needs_work=np.array([step.needs_work for step in steps], bool),
            counts=tuple(begin + COUNT for begin in loops),
            loop_fuel=FUEL_OF_ITERATION,
            is_endless=any(isinstance(step.kernel, CountPlan) for step in steps),
            slots=tuple(slots),
            of_slots=of_slots,
        )

    def _is_known(self, dim: Dim | Eventual) -> bool:
        return self._program.stage_of([dim.size if isinstance(dim, Eventual) else dim]) <= self._stage

    def _add(self, argument: Argument) -> None:
        place, number = len(self._which), self._firsts
        if argument.__class__ in _SIZES:  # as most
            self._which.append(self._number(argument))  # pyright: ignore[reportArgumentType]: it is one
            return
        if isinstance(argument, StepNumber):
            argument = self._numbers[argument.place]
        elif isinstance(argument, ArgumentPlace):
            self._in_arguments.append((place, self._numbers[argument.place], argument.argument))
            argument = 0
        elif isinstance(argument, PassedPlace):
            self._in_passed.append((place, number[argument.storage.kind] + argument.storage.number))
            argument = 0
        if not isinstance(argument, Address):
            self._which.append(self._number(argument))
            return
        storage = argument.storage
        inside = self._arena.offset_of[storage.number] if storage.kind is Kind.ARENA else 0
        self._which.append(self._number(argument.offset + inside))
        if storage.kind is Kind.CONSTANT:
            self._fixed.append((place, storage.number))
        elif storage.kind is Kind.ARENA:
            self._slots.append((place, self._arena.slot_of[storage.number]))
        else:
            self._passed.append((place, number[storage.kind] + storage.number))

    def _number(self, dim: Dim | Eventual) -> int:
        return self._sizes.setdefault(dim, len(self._sizes))


def _numbers(program: Program) -> tuple[int, ...]:
    numbers, count = list[int](), 0
    for step in program.steps:
        numbers.append(count)
        count += isinstance(step, NativeStep)
    return (*numbers, count)


def _columns(pairs: Sequence[tuple[int, int]]) -> Places:
    both: Array = np.array(pairs, np.int64).reshape(-1, 2)
    first: Any = both[:, 0]
    return first, both[:, 1]
