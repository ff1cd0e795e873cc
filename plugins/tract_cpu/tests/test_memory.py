"""Where tensors lie in the arena, and how arguments are bound, with integers."""

from __future__ import annotations

import numpy as np
from tract_cpu.binding import Layout
from tract_cpu.kernels.expressions import Expression
from tract_cpu.kernels.map import MapPlan
from tract_cpu.language.types import F32
from tract_cpu.lower.loops import Loop, collapsed
from tract_cpu.lower.program import NativeStep, Program
from tract_cpu.lower.views import Address, Kind, Storage
from tract_cpu.memory import plan_arena

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


def test_what_is_not_needed_any_more_makes_room() -> None:
    plan = plan_arena(chain([100, 200, 100, 200, 100]))
    assert plan.slot_of == (0, 1, 0, 1, 0)
    assert plan.slots == ((100,), (200,))


def test_symbolic_sizes_lie_with_their_like() -> None:
    size = symbol("S")
    plan = plan_arena(chain([4 * size, 8 * size, 4 * size, 8 * size]))
    assert plan.slot_of == (0, 1, 0, 1)
    assert plan.slots == ((4 * size,), (8 * size,))


def test_two_tensors_that_live_at_once_never_overlap() -> None:
    plan = plan_arena(chain([100, 100, 100]))
    assert plan.slot_of[0] != plan.slot_of[1] != plan.slot_of[2]


def test_new_sizes_move_every_address() -> None:
    size = symbol("S")
    layout = Layout(chain([4 * size, 8 * size, 4 * size]), 0)
    for value, slots in ((3, [0, 64, 128]), (100, [0, 448, 1280])):
        bound = layout.bind({"S": value})
        assert bound.slots.tolist() == slots
        assert bound.arguments[np.array(layout.begins)].tolist() == [8 * value, 4 * value]


def test_loops_become_one_where_all_tensors_go_on() -> None:
    assert collapsed([2, 3, 4], [(12, 4, 1), (12, 4, 1)]) == [Loop(24, (1, 1))]
    assert collapsed([2, 3, 4], [(12, 4, 1), (4, 0, 1)]) == [Loop(2, (12, 4)), Loop(3, (4, 0)), Loop(4, (1, 1))]
    assert collapsed([2, 1, 4], [(4, 7, 1)]) == [Loop(8, (1,))]
    size = symbol("S")
    assert collapsed([size, 4], [(4, 1), (0, 0)]) == [Loop(4 * size, (1, 0))]
    assert collapsed([4, size], [(size, 1)]) == [Loop(4 * size, (1,))]
