"""The compiler as a list of passes, each from one frozen value to the next, which can be looked at and checked.

``native_form`` rewrites the model into what kernels are made for, ``group`` decides which nodes one kernel computes, in
which order and in which blocks of channels, ``lay_out`` where tensors are written, so that few are copied,
``choose_kernels`` on kernels, their arguments, and copies, ``schedule`` makes one program of them, ``plan_memory``
decides what shares memory. Then the code of kernels is written (`tract_cpu.kernels.code`).

Two decisions depend on each other: a group is made before there is a kernel for it. Where `choose_kernels` finds that
there is none, it has groups made again without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tract_llvm.fuse.walk import Refused

from tract_core.compile.groups import groups_text
from tract_core.compile.passes import PassFn, checking, through, up_to
from tract_core.frozen import frozen
from tract_core.runtime.host import HostNode, host_nodes
from tract_cpu.draft.lowering import Lowering
from tract_cpu.group.grouping import CpuGrouper
from tract_cpu.group.known import CpuKnown
from tract_cpu.lay_out.layout import Layout, lay_out
from tract_cpu.lower.groups import GroupRefused, lower_groups
from tract_cpu.memory import check_memory, plan_memory
from tract_cpu.native_form.native_form import native_form
from tract_cpu.schedule.schedule import put_together, schedule

if TYPE_CHECKING:
    from tract_core.compile.arena_plan import ArenaPlan
    from tract_core.model.typed import TypedModel
    from tract_cpu.draft.draft import Drafted
    from tract_cpu.group.groups import CpuGroup
    from tract_cpu.program.program import Program
    from tract_cpu.target import Target


@frozen
class Formed:
    """A model in native form. ``nodes``: in order of execution."""

    model: TypedModel
    nodes: tuple[HostNode, ...]

    def text(self) -> str:
        """The model, a line for each node."""
        from tract_core.model.op_text import model_text

        return model_text(self.model) + "\n"


@frozen
class Grouped(Formed):
    """A model with its groups, in the order in which they are computed. ``known``: what was found out on the way."""

    groups: tuple[CpuGroup, ...]
    known: CpuKnown

    def text(self) -> str:
        """A line for each group: its kind, its nodes; below it, what it reads and computes."""
        return groups_text(self.model, self.groups)


@frozen
class LaidOut(Grouped):
    """A model with its groups, and where the tensors are written that these give."""

    layout: Layout

    def text(self) -> str:
        """A line for each tensor that a group gives."""
        return self.layout.text(self.model, self.groups)


@frozen
class Chosen(LaidOut):
    """A model with kernels: all steps, each where its group came."""

    drafted: Drafted

    def text(self) -> str:
        """What would be the program if these steps were done as they are."""
        from tract_cpu.program.text import program_text

        return program_text(put_together(self.drafted), self.model)


@frozen
class Scheduled(Formed):
    """A model with its program."""

    program: Program

    def text(self) -> str:
        """The program: steps with their kernels and arguments, loops, and the memory that they work on."""
        from tract_cpu.program.text import program_text

        return program_text(self.program, self.model)


@frozen
class Planned(Scheduled):
    """A model with its program, and the places of tensors in the arena."""

    arena: ArenaPlan

    def text(self) -> str:
        """The slots of the arena, and what lies in each."""
        return self.arena.text()


def _formed(model: TypedModel, target: Target) -> Formed:
    formed = native_form(model)
    return Formed(formed, tuple(host_nodes(formed)))


def _grouped(formed: Formed, target: Target, refused: Refused = MappingProxyType({})) -> Grouped:
    known = _known(formed.model, target)
    groups = CpuGrouper(known, formed.nodes, refused).found()
    if checking():
        from tract_cpu.group.check import check_groups

        check_groups(formed.model, groups)
    return Grouped(formed.model, formed.nodes, groups, known)


def _known(model: TypedModel, target: Target, like: CpuKnown | None = None) -> CpuKnown:
    """What is known of a model before anything has a place. ``like``: as in `CpuKnown`."""
    return CpuKnown(model, target.isa, known=target.known, threads=target.threads, rounding=target.rounding, like=like)


def _laid_out(grouped: Grouped, target: Target) -> LaidOut:
    model, nodes, groups = grouped.model, grouped.nodes, grouped.groups
    known = _known(model, target, grouped.known)
    layout = lay_out(known, groups, {node.node: node for node in nodes}, model.outputs)
    if checking():
        from tract_cpu.lay_out.check import check_layout

        check_layout(model, groups, layout)
    return LaidOut(model, nodes, groups, known, layout)


def _chosen(laid_out: LaidOut, target: Target) -> Chosen:
    """The kernels of a model. Where there is none for a group of several nodes, these are put into groups again."""
    refused: dict[int, str] = {}
    while True:
        try:
            drafted = _drafted(laid_out, target)
            break
        except GroupRefused as error:
            refused |= error.refused
            laid_out = _laid_out(_grouped(laid_out, target, refused), target)
    if checking():
        from tract_cpu.program.check import check_program

        check_program(put_together(drafted), laid_out.model, target.known)
    return Chosen(laid_out.model, laid_out.nodes, laid_out.groups, laid_out.known, laid_out.layout, drafted)


def _drafted(laid_out: LaidOut, target: Target) -> Drafted:
    """The steps. Raises `GroupRefused` where a group is none."""
    options: dict[str, Any] = {"threads": target.threads, "rounding": target.rounding, "like": laid_out.known}
    lowering = Lowering(laid_out.model, target.isa, layout=laid_out.layout, known=target.known, **options)
    lowering.take_inputs()
    for node, why in lower_groups(lowering, laid_out.groups, {node.node: node for node in laid_out.nodes}):
        lowering.host(node, why)
    return lowering.drafted()


def _scheduled(chosen: Chosen, target: Target) -> Scheduled:
    program = schedule(chosen.drafted, target.isa, target.threads)
    if checking():
        from tract_cpu.program.check import check_program

        check_program(program, chosen.model, target.known)
    return Scheduled(chosen.model, chosen.nodes, program)


def _planned(scheduled: Scheduled, target: Target) -> Planned:
    arena = plan_memory(scheduled.program)
    if checking():
        check_memory(scheduled.program, arena, scheduled.model)
    return Planned(scheduled.model, scheduled.nodes, scheduled.program, arena)


COMPILE: Final[Mapping[str, PassFn[Target]]] = {
    "native_form": _formed,
    "group": _grouped,
    "lay_out": _laid_out,
    "choose_kernels": _chosen,
    "schedule": _scheduled,
    "plan_memory": _planned,
}
"""The passes by name, in order: ``(value, target) -> value``. The first one takes a model in normal form."""


def compiled(model: TypedModel, target: Target) -> Planned:
    """What all passes make of a model in normal form."""
    return through(COMPILE.values(), model, target)


def after(name: str, model: TypedModel, target: Target) -> Formed:
    """What the passes up to the one of this name make of a model in normal form, which has a text."""
    return through(up_to(name, COMPILE), model, target)


def program_of(model: TypedModel, target: Target) -> Program:
    """The program of a model that is in native form."""
    behind = [one for name, one in COMPILE.items() if name not in {"native_form", "plan_memory"}]
    found: Scheduled = through(behind, Formed(model, tuple(host_nodes(model))), target)
    return found.program
