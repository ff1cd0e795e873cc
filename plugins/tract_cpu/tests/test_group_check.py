"""Faults that are planted into groups are told, each where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from golden_models import GOLDEN
from tract_cpu.compile import Grouped, after
from tract_cpu.group.check import check_groups, faults
from tract_cpu.group.groups import CpuGroup
from tract_cpu.target import Target
from tract_llvm.isa import ISAS

from tract_core.model.graph import OutletId

Groups = tuple[CpuGroup, ...]


def made(name: str) -> Grouped:
    found = after("group", GOLDEN[name](), Target(ISAS[-1], 2))
    assert isinstance(found, Grouped)
    return found


def changed(groups: Groups, number: int, **changes: Any) -> Groups:
    return (*groups[:number], replace(groups[number], **changes), *groups[number + 1 :])


def in_chain(groups: Groups, number: int, **changes: Any) -> Groups:
    return changed(groups, number, chain=replace(groups[number].chain, **changes))  # type: ignore[attr-defined]


def in_region(groups: Groups, number: int, **changes: Any) -> Groups:
    return changed(groups, number, region=replace(groups[number].region, **changes))  # type: ignore[attr-defined]


def blocks(groups: Groups, number: int, **changes: int) -> Groups:
    form = groups[number].form
    assert form is not None
    return changed(groups, number, form=replace(form, **changes))


def turned(groups: Groups) -> Groups:
    return (groups[1], groups[0], *groups[2:])


def later(groups: Groups) -> Groups:
    """The first step of a chain is computed of the last value."""
    expression = groups[0].chain.expression  # type: ignore[attr-defined]
    first, *others = expression.steps
    steps = (replace(first, operands=(len(expression.types) - 1,)), *others)
    return in_chain(groups, 0, expression=replace(expression, steps=steps))


FAULTS: list[tuple[str, Callable[[Groups], Groups], str]] = [
    ("convolutions", lambda g: g[1:], "no group computes node 'n.conv'"),
    ("convolutions", lambda g: (g[0], *g), "node 'n.conv' is in group 0 and in group 1"),
    ("convolutions", turned, "group 0 reads n.max, which nothing before it gives"),
    (
        "convolutions",
        lambda g: changed(g, 0, nodes=g[0].nodes[::-1]),
        "group 0 reads n.conv, which nothing before it gives",
    ),
    ("convolutions", lambda g: changed(g, 0, nodes=()), "group 0 has no nodes"),
    ("convolutions", lambda g: changed(g, 0, reads=((OutletId(g[1].nodes[0]), None),)), "which it does not"),
    ("convolutions", lambda g: blocks(g, 0, channels=5), "in blocks that do not fit"),
    ("convolutions", lambda g: blocks(g, 0, axis=9), "in blocks that do not fit"),
    ("convolutions", lambda g: blocks(g, 0, block=0), "in blocks that do not fit"),
    (
        "convolutions",
        lambda g: changed(g, 1, reads=((g[1].reads[0][0], replace(g[1].form, channels=3)), *g[1].reads[1:])),
        "in blocks",
    ),  # type: ignore[arg-type]
    ("convolutions", lambda g: in_chain(g, 0, nodes=g[0].nodes[1:]), "does not begin with the nodes of its chain"),
    ("convolutions", lambda g: in_chain(g, 0, outlet=OutletId(g[0].nodes[0])), "not with its last node"),
    ("convolutions", lambda g: in_chain(g, 0, operands=()), "has 0 operands for 2 inputs"),
    ("convolutions", later, "of a later one"),
    ("normalised", lambda g: in_region(g, 0, values=g[0].region.values[1:]), "has other nodes than its program"),  # type: ignore[attr-defined]
    ("normalised", lambda g: in_region(g, 0, steps=g[0].region.steps[::-1]), "of a later one"),  # type: ignore[attr-defined]
    ("normalised", lambda g: in_region(g, 0, tensors=()), "of which there are 0"),
    ("normalised", lambda g: in_region(g, 0, axes=frozenset({7})), "reduces along axes"),
    ("normalised", lambda g: in_region(g, 0, steps=g[0].region.steps[:2]), "gives a value that is not computed"),  # type: ignore[attr-defined]
    ("normalised", lambda g: changed(g, 0, reads=()), "which it does not say that it reads"),
]


@pytest.mark.parametrize("name", GOLDEN)
def test_groups_of_the_compiler_have_no_faults(name: str) -> None:
    found = made(name)
    assert not list(faults(found.model, found.groups))


@pytest.mark.parametrize("place", range(len(FAULTS)))
def test_a_planted_fault_is_told(place: int) -> None:
    name, plant, told = FAULTS[place]
    found = made(name)
    with pytest.raises(AssertionError, match=told):
        check_groups(found.model, plant(found.groups))
