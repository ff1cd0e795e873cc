"""Where tensors lie in the arena, and how arguments are bound, with integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tract_cpu.kernels.map import MapPlan
from tract_cpu.lay_arguments import argument_layout
from tract_cpu.memory import plan_memory
from tract_cpu.program.program import NativeStep, Program
from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import F32
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.storages import Address, Kind, Storage

from tract_core.dims import symbol

KERNEL = MapPlan(Expression((F32,)), 1, ("next", "next"), 16, masked=True)


def chain(sizes: list) -> Program:
    """Steps that each read what the one before wrote."""
    arena = [Storage(Kind.ARENA, number) for number in range(len(sizes))]
    steps = [
        NativeStep(KERNEL, (size, Address(before), Address(after)), 1, (number,), (after,))
        for number, (size, before, after) in enumerate(zip(sizes[1:], arena, arena[1:], strict=False))
    ]
    return Program(tuple(steps), (), tuple(sizes), (), {}, {})


def at_once(sizes: list[int]) -> int:
    """What two neighbours of a chain take together, at most, in whole lines of the cache."""
    lines = [-(-size // 64) * 64 for size in sizes]
    return max(map(sum, pairwise(lines)))


def test_what_is_not_needed_any_more_makes_room() -> None:
    plan = plan_memory(chain([128, 256, 128, 256, 128]))
    assert plan.slot_of == (0, 0, 0, 0, 0)
    assert plan.slots == ((384,),)
    assert plan.offset_of == (256, 0, 256, 0, 256)


@given(st.lists(st.integers(-3, 5000), min_size=2, max_size=30))
def test_a_chain_takes_little_more_than_its_largest_neighbours_and_these_never_overlap(sizes: list[int]) -> None:
    plan = plan_memory(chain(sizes))
    places = [(offset, offset + max(size, 0)) for offset, size in zip(plan.offset_of, sizes, strict=True)]
    for (begin, end), (other, last) in pairwise(places):
        assert end <= other or last <= begin
    assert all(begin % 64 == 0 for begin, _ in places)
    (((whole,),)) = plan.slots
    assert max(end for _, end in places) <= whole <= 1.5 * at_once([max(size, 0) for size in sizes])


def test_sizes_of_about_the_same_size_take_each_others_places() -> None:
    sizes = [25600, 26112, 25856, 27648, 25600, 26624, 25728, 27648, 25600, 25856] * 4
    (((whole,),)) = plan_memory(chain(sizes)).slots
    assert whole <= 1.1 * at_once(sizes)


def test_sizes_that_are_multiples_of_one_are_packed_like_numbers() -> None:
    size = symbol("S")
    plan = plan_memory(chain([256 * size, 128 * size, 64 * size, 192 * size, 5, 70]))
    numbers = plan_memory(chain([256, 128, 64, 192]))
    assert plan.slot_of == (1, 1, 1, 1, 0, 0)
    assert plan.slots == ((192,), (384 * size,))
    assert plan.offset_of[:4] == tuple(offset * size for offset in numbers.offset_of)


def test_symbolic_sizes_lie_with_their_like() -> None:
    size = symbol("S")
    plan = plan_memory(chain([4 * size, 8 * size, 4 * size, 8 * size]))
    assert plan.slot_of == (0, 1, 0, 1)
    assert plan.slots == ((4 * size,), (8 * size,))
    other = symbol("T")
    plan = plan_memory(chain([64 * size, 64 * other, 64 * size, 64 * other]))
    assert plan.slots == ((64 * size,), (64 * other,))


def test_two_tensors_that_live_at_once_never_overlap() -> None:
    size = symbol("S")
    plan = plan_memory(chain([4 * size, 4 * size, 4 * size]))
    assert plan.slot_of[0] != plan.slot_of[1] != plan.slot_of[2]


def test_new_sizes_move_every_address() -> None:
    size = symbol("S")
    program = chain([4 * size, 8 * size, 4 * size])
    layout = argument_layout(program, plan_memory(program), 0)
    for value, slots in ((3, [0, 64, 128]), (100, [0, 448, 1280])):
        bound = layout.bind({"S": value})
        assert bound.slots == slots
        assert bound.arguments[np.array(layout.sections[0].begins)].tolist() == [8 * value, 4 * value]


def test_loops_become_one_where_all_tensors_go_on() -> None:
    assert collapsed([2, 3, 4], [(12, 4, 1), (12, 4, 1)]) == [StridedLoop(24, (1, 1))]
    assert collapsed([2, 3, 4], [(12, 4, 1), (4, 0, 1)]) == [
        StridedLoop(2, (12, 4)),
        StridedLoop(3, (4, 0)),
        StridedLoop(4, (1, 1)),
    ]
    assert collapsed([2, 1, 4], [(4, 7, 1)]) == [StridedLoop(8, (1,))]
    size = symbol("S")
    assert collapsed([size, 4], [(4, 1), (0, 0)]) == [StridedLoop(4 * size, (1, 0))]
    assert collapsed([4, size], [(size, 1)]) == [StridedLoop(4 * size, (1,))]
