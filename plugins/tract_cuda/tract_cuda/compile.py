"""The compiler as a list of passes, each from one frozen value to the next, which can be looked at.

``native_form`` rewrites the model into what kernels are made for; ``group`` decides which nodes one kernel computes,
and in which order; ``choose_kernels`` on kernels, their arguments, and what is copied between host and device;
``plan_memory`` on what shares memory on the device.

Two decisions depend on each other: a group is made before there is a kernel for it. Where `choose_kernels` finds that
there is none, it has groups made again without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.compile.arena import plan_arena
from tract_core.compile.arena_plan import ArenaPlan
from tract_core.compile.groups import Group, groups_text
from tract_core.compile.passes import PassFn, checking, through, up_to
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_time
from tract_core.model.typed import TypedModel
from tract_core.runtime.host import HostNode, host_nodes
from tract_cuda.group.grouping import CudaGrouper
from tract_cuda.group.groups import Host
from tract_cuda.lowering import Lowering, Site, Target
from tract_cuda.native_form import native_form
from tract_cuda.program import CudaProgram
from tract_cuda.program_text import program_text
from tract_cuda.table import CUDA, KINDS

ALIGNMENT: Final = 256
"""Bytes at multiples of which tensors begin on the device."""


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
    """A model with its groups, in the order in which they are computed."""

    groups: tuple[Group, ...]

    def text(self) -> str:
        """A line for each group: its kind, its nodes; below it, what it reads and computes."""
        return groups_text(self.model, self.groups)


@frozen
class Chosen(Grouped):
    """A model with its program, whose `Hosted` steps say of each node that is left to the host, for want of what."""

    program: CudaProgram

    def text(self) -> str:
        """A line for each step."""
        return program_text(self.program, self.model)


@frozen
class Planned(Chosen):
    """A model with its program, and the places of tensors in the arena."""

    arena: ArenaPlan

    def text(self) -> str:
        """The slots of the arena, and what lies in each."""
        return self.arena.text()


class GroupRefused(Exception):
    """There is no kernel for a group of several nodes, for the reason ``why``."""

    def __init__(self, node: int, why: str) -> None:
        super().__init__(why)
        self.node, self.why = node, why


def _formed(model: TypedModel, target: Target) -> Formed:
    formed = native_form(model)
    return Formed(formed, tuple(host_nodes(formed)))


def _grouped(formed: Formed, target: Target, refused: Mapping[int, str] | None = None) -> Grouped:
    model, nodes = formed.model, formed.nodes
    groups = CudaGrouper(model, nodes, target, refused or {}).found()
    if checking():
        from tract_cuda.program_check import check_groups

        check_groups(model, groups)
    return Grouped(model, nodes, groups)


def _chosen(grouped: Grouped, target: Target) -> Chosen:
    """The kernels of a model. Where there is none for a group of several nodes, groups are made again without it."""
    refused: dict[int, str] = {}
    while True:
        try:
            return Chosen(grouped.model, grouped.nodes, grouped.groups, _lowered(grouped, target))
        except GroupRefused as error:
            refused[error.node] = error.why
            grouped = _grouped(grouped, target, refused)


def _lowered(grouped: Grouped, target: Target) -> CudaProgram:
    lowering, nodes = Lowering(grouped.model, target), {node.node: node for node in grouped.nodes}
    for group in grouped.groups:
        check_time()
        node = nodes[group.nodes[0]]
        why = group.why if isinstance(group, Host) else _why_not(Site(lowering, node, group))
        if why is not None and len(group.nodes) > 1:
            raise GroupRefused(node.node, why)
        if why is not None:
            lowering.host(node, why)
        if target.shows:
            lowering.show(group.nodes)
    return _looked_through(lowering.program(), grouped.model)


def _looked_through(program: CudaProgram, model: TypedModel) -> CudaProgram:
    if checking():
        from tract_cuda.program_check import check_program

        check_program(program, model)
    return program


def _why_not(site: Site) -> str | None:
    """Add the launches of a group. Returns why there are none."""
    registry, kind = site.lowering.model.registry, type(site.node.op)
    try:
        lower = registry[KINDS].find(type(site.group))
        if lower is not None:
            return lower(site)
        row = registry[CUDA].find(kind)
        return row(site.node.op, site) if row is not None else "there is no kernel for this operator yet"
    except FactError as error:
        return f"sizes do not fit: {error.problem}"


def _planned(chosen: Chosen, target: Target) -> Planned:
    program = chosen.program
    arena = plan_arena(program.arena, program.lives(), lambda size: program.stage_of([size]), ALIGNMENT)
    if checking():
        from tract_cuda.program_check import check_memory

        check_memory(program, arena, chosen.model, ALIGNMENT)
    return Planned(chosen.model, chosen.nodes, chosen.groups, program, arena)


COMPILE: Final[Mapping[str, PassFn[Target]]] = {
    "native_form": _formed,
    "group": _grouped,
    "choose_kernels": _chosen,
    "plan_memory": _planned,
}
"""The passes by name, in order: ``(value, target) -> value``. The first one takes a model in normal form."""


def compiled(model: TypedModel, target: Target) -> Planned:
    """What all passes make of a model in normal form."""
    return through(COMPILE.values(), model, target)


def after(name: str, model: TypedModel, target: Target) -> Formed:
    """What the passes up to the one of this name make of a model in normal form, which has a text."""
    return through(up_to(name, COMPILE), model, target)
