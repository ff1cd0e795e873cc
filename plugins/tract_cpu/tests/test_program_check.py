"""Faults that are planted into programs are told, each where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from golden_models import GOLDEN
from tract_cpu.compile import program_of
from tract_cpu.memory import check_memory, plan_memory
from tract_cpu.native_form.native_form import native_form
from tract_cpu.program.check import check_program, faults
from tract_cpu.program.program import Argument, ArgumentPlace, NativeStep, Program, RunStage, StepNumber
from tract_cpu.target import Target
from tract_llvm.isa import ISAS
from tract_llvm.program.storages import Address, Kind, Storage

from tract_core.dims import symbol
from tract_core.model.typed import TypedModel


def made(name: str) -> tuple[Program, TypedModel]:
    model = native_form(GOLDEN[name]())
    return program_of(model, Target(ISAS[-1], 2)), model


def with_step(program: Program, place: int, **changes: Any) -> Program:
    steps = list(program.steps)
    steps[place] = replace(steps[place], **changes)
    return replace(program, steps=tuple(steps))


def without(program: Program, place: int) -> Program:
    return replace(program, steps=(*program.steps[:place], *program.steps[place + 1 :]))


def turned(program: Program, place: int) -> Program:
    steps = list(program.steps)
    steps[place : place + 2] = steps[place + 1], steps[place]
    return replace(program, steps=tuple(steps))


def reading(program: Program, place: int, storage: Storage) -> Program:
    """A step with the first of its addresses elsewhere."""
    step = program.steps[place]
    assert isinstance(step, NativeStep)
    first = next(number for number, one in enumerate(step.arguments) if isinstance(one, Address))
    return with_argument(program, place, first, Address(storage))


def with_argument(program: Program, place: int, number: int, argument: Any) -> Program:
    step = program.steps[place]
    assert isinstance(step, NativeStep)
    arguments = [argument if one == number else given for one, given in enumerate(step.arguments)]
    return with_step(program, place, arguments=tuple(arguments))


def arguments_of(program: Program, place: int) -> tuple[Argument, ...]:
    step = program.steps[place]
    assert isinstance(step, NativeStep)
    return step.arguments


def with_loop(program: Program, **changes: int) -> Program:
    return replace(program, loops=(replace(program.loops[0], **changes), *program.loops[1:]))


LAST = Storage(Kind.ARENA, 3)
BEGIN = 3  # the step of the scan that begins its loop
FAULTS: list[tuple[str, Callable[[Program], Program], str]] = [
    ("convolutions", lambda p: without(p, 2), r"step \d+ reads arena\[1\], to which no step before it writes"),
    ("convolutions", lambda p: without(p, 5), r"no step computes node 'n.conv.2'"),
    ("convolutions", lambda p: turned(p, 5), r"step 5 reads arena\[3\], to which no step before it writes"),
    ("convolutions", lambda p: reading(p, 2, LAST), r"step 2 reads arena\[3\], to which no step before it writes"),
    (
        "convolutions",
        lambda p: reading(p, 2, Storage(Kind.ARENA, 99)),
        r"step 2 mentions arena\[99\], of which",
    ),
    ("convolutions", lambda p: reading(p, 2, Storage(Kind.INPUT, 1)), r"input\[1\], of which there are 1"),
    ("convolutions", lambda p: reading(p, 2, Storage(Kind.CONSTANT, 50)), r"constant\[50\], of which there are"),
    ("convolutions", lambda p: reading(p, 2, Storage(Kind.KEPT, 0)), r"kept\[0\], of which there are 0"),
    ("convolutions", lambda p: reading(p, 2, Storage(Kind.HOST, 0)), r"host\[0\], of which there are 0"),
    ("convolutions", lambda p: with_step(p, 2, results=(Storage(Kind.CONSTANT, 0),)), r"writes to constant\[0\]"),
    ("convolutions", lambda p: with_step(p, 2, nodes=()), r"no step computes node 'n.conv'"),
    ("convolutions", lambda p: with_step(p, 2, tasks=symbol("Z")), r"step 2 needs Z, which nothing tells"),
    ("convolutions", lambda p: replace(p, arena=p.arena[:2]), r"arena\[2\], of which there are 2"),
    ("convolutions", lambda p: replace(p, constants=()), r"constant\[\d\], of which there are 0"),
    ("twice", lambda p: replace(p, outputs=p.outputs[::-1]), r"output 0 is \(3, 1\), the model says \(3,\)"),
    ("twice", lambda p: without(p, 2), r"output 1 is in output\[1\], to which no step writes"),
    ("scan", lambda p: with_loop(p, last=99), r"loop 0 goes from step \d+ to 99"),
    ("scan", lambda p: with_loop(p, first=7, last=6), r"loop 0 goes from step 7 to 6"),
    ("scan", lambda p: replace(p, loops=(*p.loops, replace(p.loops[0], first=p.loops[0].last, last=8))), r"crosses"),
    ("scan", lambda p: with_argument(p, 0, 1, StepNumber(99)), r"step 0 leads to step 99"),
    ("scan", lambda p: with_argument(p, 6, 0, ArgumentPlace(4, 99)), r"argument 99 of step 4, which has none"),
    ("scan", lambda p: replace(p, kept=()), r"kept\[\d\], of which there are 0"),
    ("convolutions", lambda p: with_step(p, 2, arguments=arguments_of(p, 2)[:-1]), r"step 2 gives \w+ \d+ arguments"),
    ("convolutions", lambda p: with_step(p, 2, arguments=(*arguments_of(p, 2), 1)), r"step 2 gives \w+ \d+ arguments"),
    ("scan", lambda p: with_step(p, BEGIN, arguments=(*arguments_of(p, BEGIN), 1)), r"gives begin \d+ arguments"),
    ("scan", lambda p: with_argument(p, BEGIN, 5, 8), r"begin something else than an address of i64 as argument 5"),
    ("scan", lambda p: with_argument(p, BEGIN, 0, Address(LAST)), r"begin something else than a size as argument 0"),
    ("told_by_the_host", lambda p: replace(p, since={"found": 2}), r"step 1 needs found, which only later"),
    ("found_in_the_middle", lambda p: replace(p, since={"found": 2}), r"step 3 needs found, which only later"),
    ("told_by_the_host", lambda p: replace(p, stages=(RunStage(1, frozenset({"found"})),)), r"step 1 needs found"),
    ("found_in_the_middle", lambda p: replace(p, stages=(RunStage(3, frozenset({"found"})),)), r"step 3 needs found"),
    ("told_by_the_host", lambda p: without(p, 0), r"host\[0\], of which there are 0"),
]


@pytest.mark.parametrize(("name", "plant", "message"), FAULTS)
def test_a_planted_fault_is_told(name: str, plant: Callable[[Program], Program], message: str) -> None:
    program, model = made(name)
    assert not list(faults(program, model))
    with pytest.raises(AssertionError, match=message):
        check_program(plant(program), model)


def test_tensors_in_one_place_are_told() -> None:
    program, model = made("convolutions")
    arena = plan_memory(program)
    check_memory(program, arena, model)
    with pytest.raises(AssertionError, match=r"arena\[\d\] and arena\[\d\] share bytes 0 to \d+ of slot 0"):
        check_memory(program, replace(arena, offset_of=(0,) * len(arena.offset_of)), model)
