"""The compiler as a list of passes, each from one frozen value to the next, which can be looked at and checked.

``native_form`` rewrites the model into what kernels are made for, ``group`` decides which nodes one kernel computes, in
which order and in which blocks of channels, ``lower`` on kernels and where tensors lie, ``plan_memory`` on what shares
memory. Then the code of kernels is written (`tract_cpu.kernels.code`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
class Lowered(Grouped):
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
    known = Known(formed.model, target.isa, known=target.known, threads=target.threads, winograd=target.winograd)
    groups = CpuGrouping(known, formed.nodes, refused).found()
    if os.environ.get(CHECK):
        check_groups(formed.model, groups)
    return Grouped(formed.model, formed.nodes, groups)


def lowered(grouped: Grouped, target: Target) -> Lowered:
    """The program of a model with groups. Where a group turns out to be none, its nodes are put into groups again."""
    refused: dict[int, str] = {}
    while True:
        try:
            program = lower(grouped.model, grouped.nodes, grouped.groups, target)
            break
        except GroupRefused as error:
            refused |= error.refused
            grouped = _grouped(Formed(grouped.model, grouped.nodes), target, refused)
    if os.environ.get(CHECK):
        check_program(program, grouped.model, target.known)
    return Lowered(grouped.model, grouped.nodes, grouped.groups, program)


def lower(model: TypedModel, nodes: Sequence[HostNode], groups: Sequence[CpuGroup], target: Target) -> Program:
    """The program of groups. Raises `GroupRefused` where a group is none."""
    lowering = Lowering(model, target.isa, known=target.known, threads=target.threads, winograd=target.winograd)
    lowering.take_inputs()
    for node, why in lower_groups(lowering, groups, {node.node: node for node in nodes}):
        lowering.host(node, why)
    return lowering.program()


def program_of(model: TypedModel, target: Target) -> Program:
    """The program of a model that is in native form."""
    return lowered(_grouped(Formed(model, tuple(host_nodes(model))), target), target).program


def _planned(lowered: Lowered, target: Target) -> Planned:
    return Planned(lowered.model, lowered.nodes, lowered.groups, lowered.program, plan_memory(lowered.program))


COMPILE: Final[Mapping[str, Callable[[Any, Target], Any]]] = {
    "native_form": _formed,
    "group": _grouped,
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
