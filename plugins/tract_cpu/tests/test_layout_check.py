"""Faults that are planted into layouts are told, each where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from golden_models import GOLDEN
from tract_cpu.compile import LaidOut, after
from tract_cpu.lay_out.check import check_layout, faults
from tract_cpu.lay_out.layout import Inside, Layout, Own, PartOf, Placement, SameAs, WantedOutput
from tract_cpu.target import Target
from tract_llvm.isa import ISAS

from tract_core.model.declutter import declutter
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Abs, Exp


def made(model: TypedModel) -> LaidOut:
    found = after("lay_out", model, Target(ISAS[-1], 2))
    assert isinstance(found, LaidOut)
    return found


def views() -> TypedModel:
    """Two tensors that are put together, of which one more is a view; and one that is padded."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,S,f32", model.symbols))
    (a,), (b,) = model.wire_node("a", Abs(), [x]), model.wire_node("b", Exp(), [x])
    (whole,) = model.wire_node("whole", TypedConcat(1), [a, b])
    (view,) = model.wire_node("view", AddAxis(0), [whole])
    model.set_outputs([view])
    declutter(model)
    return model


def named(found: LaidOut, name: str) -> OutletId:
    return OutletId(next(node.id for node in found.model.nodes if node.name == name))


def placed(found: LaidOut, name: str, place: Placement) -> Layout:
    return replace(found.layout, plain={**found.layout.plain, named(found, name): place})


FAULTS: list[tuple[Callable[[LaidOut], Layout], str]] = [
    (lambda f: replace(f.layout, plain={}), "group 0 gives a, which has no place"),
    (
        lambda f: placed(f, "a", PartOf(named(f, "whole"), 1, 0)),
        "a is written where whole is, which does not read it there",
    ),
    (lambda f: placed(f, "a", PartOf(named(f, "b"), 0, 0)), "a is written where b is, which does not read it there"),
    (lambda f: placed(f, "b", Inside(named(f, "whole"))), "b is written where whole is, which does not read it there"),
    (lambda f: placed(f, "b", SameAs(named(f, "view"))), "b is written where view is, which does not read it there"),
    (lambda f: placed(f, "a", WantedOutput(0)), "a is not output 0, where it is written"),
    (lambda f: placed(f, "view", WantedOutput(3)), "view is not output 3, where it is written"),
    (lambda f: placed(f, "view", PartOf(named(f, "whole"), 0, 0)), "view is a part of itself|does not read it there"),
    (lambda f: replace(f.layout, blocks={named(f, "a"): Own(((0, 0),))}), "a has zeros around 1 axes"),
]


def test_what_is_put_together_is_written_where_the_view_on_it_is_wanted() -> None:
    found = made(views())
    assert found.text().splitlines() == [
        "a: part 0 of whole, from 0 on",
        "b: part 1 of whole, from S on",
        "whole: where view is",
        "view: where output 0 is wanted",
    ]


@pytest.mark.parametrize("name", GOLDEN)
def test_layouts_of_the_compiler_have_no_faults(name: str) -> None:
    found = made(GOLDEN[name]())
    assert not list(faults(found.model, found.groups, found.layout))


@pytest.mark.parametrize("place", range(len(FAULTS)))
def test_a_planted_fault_is_told(place: int) -> None:
    found = made(views())
    plant, told = FAULTS[place]
    with pytest.raises(AssertionError, match=told):
        check_layout(found.model, found.groups, plant(found))
