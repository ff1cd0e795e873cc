"""How long tensors count, over the groups of random models: compared with what a run of these groups touches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tract_core.compile.arena import plan_arena
from tract_core.compile.groups import Group
from tract_core.compile.lifetimes import lives_of_groups
from tract_core.dims import evaluate
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add


def drawn(seed: int) -> tuple[TypedModel, list[OutletId], list[Group]]:
    """Sums of any two tensors before them, cut into groups of neighbours in that order."""
    rolls, model = random.Random(seed), TypedModel()
    tensors = [model.add_source("x", parse_typed_fact("N,4,f32", model.symbols))]
    for number in range(rolls.randint(1, 12)):
        tensors += model.wire_node(f"n{number}", Add(), rolls.choices(tensors, k=2))
    sums = tensors[1:]
    model.set_outputs(rolls.sample(sums, rolls.randint(1, min(3, len(sums)))))
    cuts = sorted({0, len(sums), *(rolls.randint(0, len(sums)) for _ in range(4))})
    return model, sums, [Group(tuple(one.node for one in sums[a:b])) for a, b in pairwise(cuts)]


def group_of(groups: Sequence[Group], node: int) -> int:
    return next(place for place, group in enumerate(groups) if node in group.nodes)


@given(st.integers(0, 1 << 30))
def test_a_tensor_counts_from_the_group_that_gives_it_to_the_last_that_reads_it(seed: int) -> None:
    model, sums, groups = drawn(seed)
    number = {outlet: place for place, outlet in enumerate(sums)}
    lives = lives_of_groups(model, groups, number.get)
    for outlet, place in number.items():
        begin = group_of(groups, outlet.node)
        readers = [group_of(groups, one.node) for one in model.outlet(outlet).successors]
        ends = [len(groups)] if outlet in model.outputs else [one for one in readers if one != begin]
        if ends or outlet.node == groups[begin].nodes[-1]:
            assert lives[place] == (begin, max([*ends, begin]))
        else:
            assert place not in lives  # the group keeps it to itself


@given(st.integers(0, 1 << 30), st.integers(0, 9))
def test_in_an_arena_no_group_finds_what_it_reads_overwritten(seed: int, size: int) -> None:
    model, sums, groups = drawn(seed)
    number = {outlet: place for place, outlet in enumerate(sums)}
    lives = lives_of_groups(model, groups, number.get)
    sizes = [model.outlet_fact(one).shape.volume * 4 for one in sums]
    plan, memory = plan_arena(sizes, lives, lambda _: 0, 16), dict[int, OutletId]()

    def places(outlet: OutletId) -> list[int]:
        slot, begin = plan.slot_of[number[outlet]], evaluate(plan.offset_of[number[outlet]], {"N": size})
        return [(slot << 20) + one for one in range(begin, begin + 16 * size)]

    for group in groups:
        for outlet in sums:
            reads = any(one.node in group.nodes for one in model.outlet(outlet).successors)
            if reads and outlet.node not in group.nodes:
                assert all(memory[one] == outlet for one in places(outlet))
        for outlet in sums:
            if outlet.node in group.nodes and number[outlet] in lives:
                memory.update(dict.fromkeys(places(outlet), outlet))
    for outlet in model.outputs:
        assert all(memory[one] == outlet for one in places(outlet))


def test_views_count_as_what_they_are_views_on() -> None:
    model, sums, _ = drawn(0)
    groups = [Group((one.node,)) for one in sums]
    assert lives_of_groups(model, groups, lambda one: 0 if one in sums else None) == {0: (0, len(groups))}
    assert not lives_of_groups(model, groups, dict[OutletId, int]().get)
