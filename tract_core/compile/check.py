"""What must hold of groups, whatever machine they are for: each node is in one, behind all that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_core.compile.groups import Group, is_constant, outlet_text
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel


def group_faults(model: TypedModel, groups: Sequence[Group]) -> Iterator[str]:
    """What is wrong with the groups of a model, a sentence each; nothing if all is well."""
    group_of: dict[int, int] = {}
    for number, group in enumerate(groups):
        if not group.nodes:
            yield f"group {number} has no nodes"
        for node in group.nodes:
            if node in group_of:
                yield f"node {model.nodes[node].name!r} is in group {group_of[node]} and in group {number}"
            group_of.setdefault(node, number)
    yield from _not_computed(model, group_of)
    yield from _read_too_early(model, groups, group_of)


def _not_computed(model: TypedModel, group_of: dict[int, int]) -> Iterator[str]:
    for number in model.eval_order():
        node = model.nodes[number]
        given = isinstance(node.op, TypedSource) or is_constant(model, OutletId(node.id))
        if node.id not in group_of and not given:
            yield f"no group computes node {node.name!r}"


def _read_too_early(model: TypedModel, groups: Sequence[Group], group_of: dict[int, int]) -> Iterator[str]:
    for number, group in enumerate(groups):
        inside: set[int] = set()
        for node in group.nodes:
            for outlet in model.nodes[node].inputs:
                giver = group_of.get(outlet.node, -1)
                early = giver == number and outlet.node not in inside
                if giver > number or early:
                    yield f"group {number} reads {outlet_text(model, outlet)}, which nothing before it gives"
            inside.add(node)
