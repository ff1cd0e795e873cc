"""Branches: the steps of both are in the program, and a condition says over which of them a run jumps."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.if_then_else import Branch, IfThenElse, branch_sizes
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.control import CONTROL, BranchPlan, JumpPlan
from tract_cpu.lower.bodies import (
    BodyTarget,
    add_body,
    add_conditions,
    body_with,
    branch_step,
    done,
    inlined,
    jump_step,
)
from tract_cpu.program.program import NativeStep, StepNumber
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, IfThenElse)
def lower_if(op: IfThenElse, site: Site) -> str | None:
    """A jump, where all nodes of both branches are native."""
    inputs = site.known_inputs()
    return inlined(site, lambda: _lower(op, site, inputs))


def _lower(op: IfThenElse, site: Site, inputs: Sequence[View]) -> None:
    steps = site.lowering.steps
    first, branches = len(steps), (("then", op.then_branch), ("else", op.else_branch))
    bodies = [body_with(branch.body, branch_sizes(label, branch, site.facts())) for label, branch in branches]
    outputs, runs = site.results(), list[Dim]()
    choice, jump = first, -1
    steps.append(NativeStep(BranchPlan(jumps=False), (), CONTROL, (), ()))
    for number, (body, (_, branch)) in enumerate(zip(bodies, branches, strict=True)):
        targets = [BodyTarget(outlet, view) for outlet, view in zip(body.outputs, outputs, strict=True)]
        given = _given(body.inputs, branch, inputs)
        runs.append(add_conditions(site, body, given))
        add_body(site, number, body, given, targets)
        if number == 0:
            jump = len(steps)
            steps.append(NativeStep(JumpPlan(), (), CONTROL, (), ()))
    steps[choice] = branch_step(inputs[0], StepNumber(jump + 1), jumps=False)
    steps[jump] = jump_step(len(steps))
    done(site, "branch", first, inputs, list(zip(bodies, runs, strict=True)))


def _given(sources: Sequence[OutletId], branch: Branch, inputs: Sequence[View]) -> dict[OutletId, View]:
    return {outlet: inputs[slot] for outlet, slot in zip(sources, branch.inputs, strict=True)}
