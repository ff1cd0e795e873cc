"""Models inside operators, whose steps become part of the program of the model around."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from tract_llvm.fuse.known import LATE
from tract_llvm.program.storages import Storage
from tract_llvm.program.views import View

from tract_core.dims import Dim, product
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.model.conditions import Condition
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.host import host_nodes
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.group.grouping import CpuGrouper
from tract_cpu.group.known import CpuKnown
from tract_cpu.kernels.control import CONTROL, BeginPlan, BranchPlan, JumpPlan, RepeatPlan
from tract_cpu.kernels.sizes import EqualPlan
from tract_cpu.lay_out.layout import lay_out
from tract_cpu.lower.groups import GroupRefused, lower_groups
from tract_cpu.lower.recurrent import written_along
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import (
    STATUS,
    ArgumentPlace,
    HostStep,
    Inlined,
    NativeStep,
    ProgramLoop,
    ReadStep,
    StepNumber,
    ViewStep,
)
from tract_cpu.program.reads import READS

WAYS: Final = ("loop", "branch", "model")
"""What placements call operators with bodies that are native."""


class Unfit(Exception):
    """A body has something that native code cannot compute; the text says what."""


def inlined(site: Site, lower: Callable[[], None]) -> str | None:
    """What a row of an operator with bodies returns. ``lower``: adds its steps, or raises Unfit, and then none stay."""
    try:
        site.lowering.attempt(lower)
    except Unfit as error:
        return str(error)
    return None


def body_with(body: TypedModel, sizes: Mapping[str, Dim]) -> TypedModel:
    """A body with the symbols of the model around. Raises Unfit where that cannot be."""
    with suppress(TractError):
        return body.substitute(sizes)
    raise Unfit("its sizes do not fit")


def supposing(lowering: Lowering, body: TypedModel) -> TypedModel:
    """A body in which sizes are 1 that only an iteration tells, and that kernels check. Raises Unfit.

    Such sizes are mostly those of the one place that an iteration writes to, or reads from. A kernel that finds another
    size refuses, and the host runs the loop.
    """
    reads, late = lowering.model.registry[READS], frozenset[str]()
    for node in body.live_nodes():
        row = reads.find(type(node.op))
        if row is not None and row.checks:
            late = late.union(*(outlet.fact.shape.symbols() for outlet in node.outputs))
    return body_with(body, dict.fromkeys(late - lowering.given, 1))


@frozen
class BodyTarget:
    """Where an output of a body has to be when a run of the body is done: from the begin of a storage on."""

    outlet: OutletId
    view: View


def add_body(
    site: Site, number: int, body: TypedModel, inputs: Mapping[OutletId, View], targets: Sequence[BodyTarget]
) -> None:
    """Add the steps that run a body once. ``number``: which one it is. Raises Unfit where the host has to run it."""
    lowering, first = site.lowering, len(site.lowering.steps)
    add_steps(lowering, body, inputs, targets, "in its body")
    for place in range(first, len(lowering.steps)):
        step = lowering.steps[place]
        assert not isinstance(step, HostStep | ReadStep)  # nothing in a body is left to the host
        lowering.steps[place] = replace(step, body=((site.node.node, number), *step.body))
    inlined = lowering.draft.inlined
    inlined[:] = [
        replace(one, body=((site.node.node, number), *one.body)) if one.first >= first else one for one in inlined
    ]


def add_steps(
    around: Lowering, body: TypedModel, inputs: Mapping[OutletId, View], targets: Sequence[BodyTarget], where: str
) -> None:
    """Add the steps of a model, none of which is left to the host. Raises Unfit, which says ``where``, if one would."""
    wanted: dict[OutletId, Storage] = {}
    for target in targets:
        if target.view.is_contiguous:
            wanted.setdefault(target.outlet, target.view.storage)
    try:
        nodes = host_nodes(body)
    except TractError as error:
        raise Unfit(f"{where}: {error.problem}") from None
    grouping = CpuGrouper(_known(around, body), nodes)
    groups = grouping.found()
    layout = lay_out(_known(around, body, grouping.known), groups, grouping.nodes, wanted)
    lowering = around.inside(grouping.known, layout, wanted)
    for outlet, view in inputs.items():
        lowering.place(outlet, replace(view, shape=tuple(body.outlet_fact(outlet).shape)))
    try:
        for node, why in lower_groups(lowering, groups, grouping.nodes):
            raise Unfit(f"{where}, node {node.name!r}: {why}")
    except GroupRefused as refused:
        raise Unfit(f"{where}, node {grouping.nodes[refused.group.nodes[0]].name!r}: {refused.why}") from None
    for target in targets:
        view = lowering.view(target.outlet)
        if view is None:
            raise Unfit(f"{where}: native code does not know the type of an output")
        is_there = lowering.places.is_same(view, target.view)
        if not is_there and not written_along(lowering.steps, view, target.view):
            lowering.copy(view, target.view)


def _known(around: Lowering, body: TypedModel, like: CpuKnown | None = None) -> CpuKnown:
    """What is known of a body before anything in it has a place. ``like``: as in `CpuKnown`."""
    return CpuKnown(body, around.isa, around, threads=around.threads, rounding=around.rounding, like=like)


def done(site: Site, how: str, first: int, inputs: Sequence[View], bodies: Sequence[tuple[TypedModel, Dim]]) -> None:
    """The node has been computed by the steps from ``first`` on."""
    lowering = site.lowering
    held = tuple(view.storage for view in inputs)  # the host begins with them again where a step refuses
    lowering.steps.append(ViewStep((site.node.node,), held))
    last = len(lowering.steps) - 1
    lowering.draft.inlined.append(Inlined(site.node.node, (), how, first, last, tuple(bodies)))


def add_conditions(site: Site, body: TypedModel, inputs: Mapping[OutletId, View]) -> Dim:
    """Add the step that refuses where sizes are not what a body wants, before its first one.

    Returns 1 where they are, else 0: nothing in the body counts then. Raises Unfit where only the host can tell.
    """
    lowering, conditions = site.lowering, [condition for condition, _ in body.conditions]
    for outlet, view in inputs.items():
        pairs = zip(view.shape, body.outlet_fact(outlet).shape, strict=True)
        conditions += [Condition(given, "==", wanted) for given, wanted in pairs if given != wanted]
    if any(not condition.symbols <= lowering.given for condition in conditions):
        raise Unfit(LATE)
    if any(condition.relation == "#" for condition in conditions):
        raise Unfit("sizes are broadcast that may contradict each other where the body is not run")
    holds = [one for condition in conditions if (one := condition.holds()) != 1]
    if holds:
        plan = EqualPlan(len(holds))
        given = arguments(plan, status=STATUS, pairs=[{"left": one, "right": 1} for one in holds])
        lowering.steps.append(NativeStep(plan, given, 1, (), ()))
    return product(holds)


def branch_step(condition: View, elsewhere: StepNumber, *, jumps: bool) -> NativeStep:
    """The step that goes on elsewhere where a boolean is ``jumps``."""
    plan = BranchPlan(jumps)
    return NativeStep(plan, arguments(plan, condition=condition.address, elsewhere=elsewhere), CONTROL, (), ())


def jump_step(place: int) -> NativeStep:
    """The step that goes on at a place."""
    plan = JumpPlan()
    return NativeStep(plan, arguments(plan, elsewhere=StepNumber(place)), CONTROL, (), ())


def begin_loop(lowering: Lowering) -> int:
    """Add the step before the first one of a loop. Returns its place."""
    first = len(lowering.steps)
    lowering.draft.loops.append(ProgramLoop(first, first))
    lowering.steps.append(NativeStep(BeginPlan(), (), CONTROL, (), ()))
    return first


def repeat(lowering: Lowering, number: int, count: Dim) -> None:
    """End a loop, by its number. Each of its steps is done ``count`` times as often, as far as that is known."""
    steps, first, last = lowering.steps, lowering.draft.loops[number].first, len(lowering.steps)
    for place in range(first + 1, last):
        step = steps[place]
        if isinstance(step, NativeStep):
            steps[place] = replace(step, times=step.times * count)
    again, begin = RepeatPlan(), BeginPlan()
    steps.append(NativeStep(again, arguments(again, loop=ArgumentPlace(first, 0)), CONTROL, (), ()))
    body, behind = StepNumber(first + 1), StepNumber(last + 1)
    given = arguments(begin, count=count, body=body, behind=behind, index=0, moves=0)
    steps[first] = NativeStep(begin, given, CONTROL, (), ())
    lowering.draft.loops[number] = ProgramLoop(first, last)
