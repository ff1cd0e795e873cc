"""The compiler as a list of passes, each from one frozen value to the next, which can be looked at and checked.

``native_form`` rewrites the model into what kernels are made for, ``group`` decides which nodes one kernel computes, in
which order and in which blocks of channels, ``lay_out`` where tensors are written, so that few are copied, ``lower`` on
kernels, their arguments and copies, ``plan_memory`` on what shares memory. Then the code of kernels is written
(`tract_cpu.kernels.code`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final

from tract_llvm.isa import Isa

from tract_core.compile.arena import ArenaPlan
from tract_core.compile.groups import groups_text
from tract_core.frozen import frozen
from tract_core.model.op_text import model_text
from tract_core.model.typed import TypedModel
from tract_core.runtime.host import HostNode, host_nodes
from tract_cpu.draft.lowering import Lowering
from tract_cpu.group.check import check_groups
from tract_cpu.group.grouping import CpuGrouping
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.known import Known
from tract_cpu.group.walk import Refused
from tract_cpu.lay_out.layout import Layout, lay_out
from tract_cpu.lower.groups import GroupRefused, lower_groups
from tract_cpu.memory import arena_text, plan_memory
from tract_cpu.native_form.native_form import native_form
from tract_cpu.program.check import check_program
from tract_cpu.program.program import Program
from tract_cpu.program.text import program_text

CHECK: Final = "TRACT_CHECK_PROGRAMS"
"""Where this variable is set, the groups and the program of each model are looked through for faults."""


@frozen
class Target:
    """What a model is compiled for.

    ``threads``: how many there may be, which changes no result. ``known``: symbols that no input gives, but whoever
    runs the model. ``winograd``: whether convolutions may be computed by Winograd's method.
    """

    isa: Isa
    threads: int = 1
    known: frozenset[str] = frozenset()
    winograd: bool = True


@frozen
class Formed:
    """A model in native form. ``nodes``: in order of execution."""

    model: TypedModel
    nodes: tuple[HostNode, ...]

    def text(self) -> str:
        """The model, a line for each node."""
        return model_text(self.model) + "\n"


@frozen
class Grouped(Formed):
    """A model with its groups, in the order in which they are computed."""

    groups: tuple[CpuGroup, ...]

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
class Lowered(LaidOut):
    """A model with its program."""

    program: Program

    def text(self) -> str:
        """The program: steps with their kernels and arguments, loops, and the memory that they work on."""
        return program_text(self.program, self.model)


@frozen
class Planned(Lowered):
    """A model with its program, and the places of tensors in the arena."""

    arena: ArenaPlan

    def text(self) -> str:
        """The slots of the arena, and what lies in each."""
        return arena_text(self.arena)


def _formed(model: TypedModel, target: Target) -> Formed:
    formed = native_form(model)
    return Formed(formed, tuple(host_nodes(formed)))


def _grouped(formed: Formed, target: Target, refused: Refused = MappingProxyType({})) -> Grouped:
    groups = CpuGrouping(_known(formed.model, target), formed.nodes, refused).found()
    if os.environ.get(CHECK):
        check_groups(formed.model, groups)
    return Grouped(formed.model, formed.nodes, groups)


def _known(model: TypedModel, target: Target) -> Known:
    """What is known of a model before anything has a place."""
    return Known(model, target.isa, known=target.known, threads=target.threads, winograd=target.winograd)


def _laid_out(grouped: Grouped, target: Target) -> LaidOut:
    model, nodes, groups = grouped.model, grouped.nodes, grouped.groups
    layout = lay_out(_known(model, target), groups, {node.node: node for node in nodes}, model.outputs)
    return LaidOut(model, nodes, groups, layout)


def lowered(laid_out: LaidOut, target: Target) -> Lowered:
    """The program of a model. Where a group turns out to be none, its nodes are put into groups again."""
    refused: dict[int, str] = {}
    while True:
        try:
            program = _program(laid_out, target)
            break
        except GroupRefused as error:
            refused |= error.refused
            laid_out = _laid_out(_grouped(laid_out, target, refused), target)
    if os.environ.get(CHECK):
        check_program(program, laid_out.model, target.known)
    return Lowered(laid_out.model, laid_out.nodes, laid_out.groups, laid_out.layout, program)


def _program(laid_out: LaidOut, target: Target) -> Program:
    """The program. Raises `GroupRefused` where a group is none."""
    model, layout = laid_out.model, laid_out.layout
    lowering = Lowering(
        model, target.isa, layout=layout, known=target.known, threads=target.threads, winograd=target.winograd
    )
    lowering.take_inputs()
    for node, why in lower_groups(lowering, laid_out.groups, {node.node: node for node in laid_out.nodes}):
        lowering.host(node, why)
    return lowering.program()


def program_of(model: TypedModel, target: Target) -> Program:
    """The program of a model that is in native form."""
    return lowered(_laid_out(_grouped(Formed(model, tuple(host_nodes(model))), target), target), target).program


def _planned(lowered: Lowered, target: Target) -> Planned:
    return Planned(
        lowered.model, lowered.nodes, lowered.groups, lowered.layout, lowered.program, plan_memory(lowered.program)
    )


COMPILE: Final[Mapping[str, Callable[[Any, Target], Any]]] = {
    "native_form": _formed,
    "group": _grouped,
    "lay_out": _laid_out,
    "lower": lowered,
    "plan_memory": _planned,
}
"""The passes by name, in order: ``(value, target) -> value``. The first one takes a model in normal form."""


def compiled(model: TypedModel, target: Target) -> Planned:
    """What all passes make of a model in normal form."""
    return _through(model, target, COMPILE.values())


def after(name: str, model: TypedModel, target: Target) -> Formed:
    """What the passes up to the one of this name make of a model in normal form, which has a text."""
    before = takewhile(lambda one: one != name, COMPILE)
    return _through(model, target, [*(COMPILE[one] for one in before), COMPILE[name]])


def _through(value: Any, target: Target, passes: Iterable[Callable[[Any, Target], Any]]) -> Any:
    for one in passes:
        value = one(value, target)
    return value
