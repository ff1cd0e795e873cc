"""Where the tensors of a program lie in its arena."""

from __future__ import annotations

from tract_llvm.program.views import Kind

from tract_core.compile.arena import ArenaPlan, lives_of, plan_arena
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.program.program import Program, touched


def plan_memory(program: Program) -> ArenaPlan:
    """The slots for the storages of a program's arena."""
    steps = [[one.number for one in touched(step) if one.kind is Kind.ARENA] for step in program.steps]
    results = [view.storage for view in program.outputs if view is not None]
    last = [storage.number for storage in results if storage.kind is Kind.ARENA]
    lives = lives_of(steps, last, [(loop.first, loop.last) for loop in program.loops])
    return plan_arena(program.arena, lives, lambda size: program.stage_of([size]), ALIGNMENT)
