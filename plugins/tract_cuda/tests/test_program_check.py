"""Faults that are planted into programs for GPUs are told, each where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tract_cuda import segments
from tract_cuda.compile import ALIGNMENT, Planned, compiled
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.program import CudaProgram, Download, Hosted, Launch, RunStage, Upload
from tract_cuda.program_check import check_groups, check_memory, check_program
from tract_llvm.program.storages import Address, Kind, Storage

from tract_core.compile.arena_plan import ArenaPlan
from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp, Tanh
from tract_core.ops.gather import Gather
from tract_core.ops.non_zero import NonZero
from tract_core.ops.random import Distribution, RandomLike
from tract_core.ops.reduce import Reduce, Reducer

TARGET = Target(arch_named("sm_90") or pytest.fail("there is none"), 4)


def wired(model: TypedModel, name: str, op: Any, *inputs: Any) -> Any:
    (found,) = model.wire_node(name, op, inputs)
    return found


def in_two_segments() -> TypedModel:
    """A product, sums of it, a node of the host, and rows that an index picks: two segments."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,8,f32", model.symbols))
    rows = model.add_source("rows", parse_typed_fact("2,i64", model.symbols))
    weights = model.add_const("w", np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))
    y = wired(model, "product", EinSum(AxesMapping(("bk", "kn"), ("bn",)), DatumType.F32), x, weights)
    total = wired(model, "total", Reduce((0,), Reducer.SUM), y)
    noise = wired(model, "noise", RandomLike(Distribution.NORMAL, 0.0, 1.0, DatumType.F32, None), y)
    picked = wired(model, "picked", Gather(0), noise, rows)
    model.set_outputs([wired(model, "tanh", Tanh(), picked), total])
    return model


def sizes_in_the_middle() -> TypedModel:
    """What is not 0, of which there are as many as data tell, and a function of each: two stages."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,f32", model.symbols))
    before = wired(model, "tanh", Tanh(), x)
    found = wired(model, "found", NonZero(symbol("N")), before)
    column = wired(model, "column", Gather(0), before, found)
    model.set_outputs([wired(model, "exp", Exp(), column), before])
    return model


@cache
def made(build: Callable[[], TypedModel]) -> Planned:
    return compiled(build(), TARGET)


def place_of(program: CudaProgram, kind: type, name: str = "", number: int = 0) -> int:
    """The place of a step of a kind, of a launch by the name of its kernel."""
    places = [
        place
        for place, step in enumerate(program.steps)
        if isinstance(step, kind) and (not isinstance(step, Launch) or not name or step.kernel.name == name)
    ]
    return places[number]


def without(program: CudaProgram, kind: type, name: str = "", number: int = 0) -> CudaProgram:
    place = place_of(program, kind, name, number)
    return replace(program, steps=(*program.steps[:place], *program.steps[place + 1 :]))


def moved(program: CudaProgram, to: int, kind: type, name: str = "", number: int = 0) -> CudaProgram:
    place = place_of(program, kind, name, number)
    steps = list(program.steps)
    steps.insert(to if to >= 0 else len(steps) + to, steps.pop(place))
    return replace(program, steps=tuple(steps))


def changed(program: CudaProgram, kind: type, name: str = "", number: int = 0, **changes: Any) -> CudaProgram:
    place = place_of(program, kind, name, number)
    steps = list(program.steps)
    steps[place] = replace(steps[place], **changes)
    return replace(program, steps=tuple(steps))


def launch_of(program: CudaProgram, name: str) -> Launch:
    step = program.steps[place_of(program, Launch, name)]
    assert isinstance(step, Launch)
    return step


def with_argument(program: CudaProgram, name: str, parameter: str, argument: Any) -> CudaProgram:
    step = launch_of(program, name)
    names = [one.name for one in step.kernel.parameters]
    arguments = [argument if one == parameter else given for one, given in zip(names, step.arguments, strict=True)]
    return changed(program, Launch, name, arguments=tuple(arguments))


def view_of(program: CudaProgram, kind: type, number: int = 0, **changes: Any) -> CudaProgram:
    step = program.steps[place_of(program, kind, number=number)]
    assert isinstance(step, Upload | Download)
    return changed(program, kind, number=number, view=replace(step.view, **changes))


def late_stage(program: CudaProgram) -> CudaProgram:
    return replace(program, stages=(program.stages[0], RunStage(len(program.steps), program.stages[1].symbols)))


B = symbol("B")
ARENA, CONSTANT = (lambda number, kind=kind: Storage(kind, number) for kind in (Kind.ARENA, Kind.CONSTANT))
TWO, LATE = in_two_segments, sizes_in_the_middle
FAULTS: list[tuple[Callable[[], TypedModel], Callable[[CudaProgram], CudaProgram], str]] = [
    (TWO, lambda p: without(p, Upload), r"step 0 reads arena\[0\], to which no step before it writes"),
    (TWO, lambda p: moved(p, -2, Upload), r"reads arena\[0\], to which no step before it writes"),
    (TWO, lambda p: without(p, Launch, "gather"), r"reads arena\[\d\], to which no step before it writes"),
    (TWO, lambda p: moved(p, 0, Download), r"step 0 reads arena\[\d\], to which no step before it writes"),
    (TWO, lambda p: without(p, Hosted), r"reads noise\S* on the host, where nothing before it gives it"),
    (TWO, lambda p: moved(p, 0, Hosted), r"step 0 reads product\S* on the host, where nothing before it gives it"),
    (TWO, lambda p: without(p, Download, number=1), r"the output \S+ never comes to the host"),
    (TWO, lambda p: without(p, Download), r"reads product\S* on the host, where nothing before it gives it"),
    (TWO, lambda p: replace(p, arena=p.arena[:1]), r"mentions arena\[1\], of which there are 1"),
    (TWO, lambda p: replace(p, constants=()), r"mentions constant\[0\], of which there are 0"),
    (TWO, lambda p: changed(p, Launch, "gather", writes=(CONSTANT(0),)), r"says that it writes to constant\[0\]"),
    (TWO, lambda p: changed(p, Launch, "gather", writes=(CONSTANT(0),)), r"writes to constant\[0\], which nobody may"),
    (TWO, lambda p: view_of(p, Upload, storage=CONSTANT(0)), r"step 0 writes to constant\[0\], which nobody may"),
    (TWO, lambda p: view_of(p, Upload, number=1, storage=ARENA(0)), r"copies \S+ over what a step before it wrote"),
    (TWO, lambda p: view_of(p, Upload, shape=(B, 9)), r"step 0 copies x\S* as \[B,9\], the model says \[B,8\]"),
    (TWO, lambda p: view_of(p, Upload, strides=(9, 1)), r"step 0 copies x\S*, which has gaps"),
    (TWO, lambda p: view_of(p, Download, offset=8), r"goes from byte 32 to \d+ of arena\[\d\], which has \d+ with B=1"),
    (TWO, lambda p: replace(p, arena=(4 * B, *p.arena[1:])), r"goes from byte 0 to \d+ of arena\[0\], which has \d+"),
    (
        TWO,
        lambda p: with_argument(p, "gather", "data", Address(ARENA(0), -4)),
        r"goes from byte -4 to -4 of arena\[0\]",
    ),
    (TWO, lambda p: with_argument(p, "gather", "data", 3), r"gather something else than an address of \w+ as data"),
    (TWO, lambda p: with_argument(p, "gather", "count", Address(ARENA(0))), r"gather something else than a size as"),
    (
        TWO,
        lambda p: changed(p, Launch, "gather", arguments=launch_of(p, "gather").arguments[1:]),
        r"gives gather \d+ arguments, wanted \d+",
    ),
    (TWO, lambda p: changed(p, Launch, "gather", grid=(symbol("Z"), 1, 1)), r"needs Z, which nothing before it tells"),
    (LATE, late_stage, r"step \d needs N, which nothing before it tells"),
    (LATE, lambda p: replace(p, stages=p.stages[::-1]), r"comes behind one that begins with step"),
    (LATE, lambda p: replace(p, stages=p.stages[:1]), r"needs N, which nothing before it tells"),
    (LATE, lambda p: moved(p, 0, Launch, "gather"), r"step 0 needs N, which nothing before it tells"),
]


@pytest.mark.parametrize(("build", "plant", "message"), FAULTS)
def test_a_planted_fault_is_told(
    build: Callable[[], TypedModel], plant: Callable[[CudaProgram], CudaProgram], message: str
) -> None:
    planned = made(build)
    check_program(planned.program, planned.model)
    with pytest.raises(AssertionError, match=message):
        check_program(plant(planned.program), planned.model)


def offset(arena: ArenaPlan, number: int, by: Any) -> ArenaPlan:
    offsets = [one + by if place == number else one for place, one in enumerate(arena.offset_of)]
    return replace(arena, offset_of=tuple(offsets))


def at_one_place(arena: ArenaPlan) -> ArenaPlan:
    """All that lies in a slot begins with it."""
    return replace(arena, offset_of=(0,) * len(arena.offset_of))


def in_slot(arena: ArenaPlan, number: int, slot: int) -> ArenaPlan:
    slots = [slot if place == number else one for place, one in enumerate(arena.slot_of)]
    return replace(arena, slot_of=tuple(slots))


MEMORY: list[tuple[Callable[[], TypedModel], Callable[[ArenaPlan], ArenaPlan], str]] = [
    (TWO, at_one_place, r"arena\[\d\] and arena\[\d\] share bytes 0 to \d+ of slot \d, and both count at step \d"),
    (TWO, lambda a: in_slot(a, 0, -1), r"arena\[0\] lies in no slot"),
    (TWO, lambda a: in_slot(a, 0, 99), r"arena\[0\] lies in no slot"),
    (TWO, lambda a: offset(a, 0, 4), r"arena\[0\] begins at byte \d+, which is no multiple of 256"),
    (TWO, lambda a: offset(a, 0, 1 << 20), r"arena\[0\] goes from byte \d+ to \d+ of slot 1, which ends before"),
    (TWO, lambda a: offset(a, 0, -256 * B), r"arena\[0\] goes from byte -256 to \S+ of slot 1, which ends before"),
    (TWO, lambda a: replace(a, slots=((0,),) * len(a.slots)), r"which ends before"),
    (TWO, lambda a: replace(a, slot_of=a.slot_of[1:]), r"the arena has places for"),
    (LATE, lambda a: replace(a, stages=(0,) * len(a.stages)), r"a slot of stage 0, its size is known from 1 on"),
]


@pytest.mark.parametrize(("build", "plant", "message"), MEMORY)
def test_a_fault_in_memory_is_told(
    build: Callable[[], TypedModel], plant: Callable[[ArenaPlan], ArenaPlan], message: str
) -> None:
    planned = made(build)
    check_memory(planned.program, planned.arena, planned.model, ALIGNMENT)
    with pytest.raises(AssertionError, match=message):
        check_memory(planned.program, plant(planned.arena), planned.model, ALIGNMENT)


def test_segments_of_other_steps_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = made(TWO)
    pieces = list(segments.pieces_of(planned.program.steps))
    late = [replace(one, stage=1) if isinstance(one, segments.Segment) and one.number else one for one in pieces]
    for cut, message in ((pieces[:-1], "other steps than it has"), (late, "segment of stage 1, and begins in stage 0")):
        monkeypatch.setattr("tract_cuda.program_check.pieces_of", lambda _, cut=cut: iter(cut))
        with pytest.raises(AssertionError, match=message):
            check_program(planned.program, planned.model)


def test_groups_that_leave_a_node_out_are_told() -> None:
    planned = made(TWO)
    check_groups(planned.model, planned.groups)
    with pytest.raises(AssertionError, match="no group computes node"):
        check_groups(planned.model, planned.groups[1:])


def test_the_compiler_looks_through_what_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> CudaProgram:
        return without(program(self), Upload)

    from tract_cuda.lowering import Lowering

    program = Lowering.program
    monkeypatch.setattr(Lowering, "program", broken)
    with pytest.raises(AssertionError, match="to which no step before it writes"):
        compiled(TWO(), TARGET)
    monkeypatch.delenv("TRACT_CHECK_PROGRAMS")
    compiled(TWO(), TARGET)


def test_a_kernel_is_given_what_it_touches() -> None:
    """Sums of few long rows take two launches, the first of which has nothing to do with the result."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,100000,f32", model.symbols))
    model.set_outputs([wired(model, "total", Reduce((1,), Reducer.SUM), x)])
    program = compiled(model, TARGET).program
    first, second = (step for step in program.steps if isinstance(step, Launch))
    assert {first.kernel.name, second.kernel.name} == {"rows_pieces", "rows_merged"}
    assert not set(second.writes) & {one.storage for one in first.arguments if isinstance(one, Address)}
