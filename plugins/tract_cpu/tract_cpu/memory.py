"""Where the tensors of a program lie in its arena."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tract_llvm.program.storages import Kind

from tract_core.compile.arena import Lives, lives_of, plan_arena
from tract_core.compile.arena_check import arena_faults, sampled
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.program.program import Program, touched

if TYPE_CHECKING:
    from tract_core.compile.arena_plan import ArenaPlan
    from tract_core.model.typed import TypedModel


def plan_memory(program: Program) -> ArenaPlan:
    """The slots for the storages of a program's arena."""
    return plan_arena(program.arena, _lives(program), lambda size: program.stage_of([size]), ALIGNMENT)


def check_memory(program: Program, arena: ArenaPlan, model: TypedModel) -> None:
    """Raises AssertionError where two tensors lie in the same place while both count, for some sizes."""
    symbols = model.given_symbols().union(*(stage.symbols for stage in program.stages))
    found = list(arena_faults(arena, program.arena, _lives(program), ALIGNMENT, sampled(model, symbols)))
    if found:
        raise AssertionError("\n".join([*found, arena.text()]))


def _lives(program: Program) -> Lives:
    steps = [[one.number for one in touched(step) if one.kind is Kind.ARENA] for step in program.steps]
    results = [view.storage for view in program.outputs if view is not None]
    last = [storage.number for storage in results if storage.kind is Kind.ARENA]
    return lives_of(steps, last, [(loop.first, loop.last) for loop in program.loops])
