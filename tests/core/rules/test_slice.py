from __future__ import annotations

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.elementwise import Exp
from tract_core.ops.range import Range
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

B, S = symbol("B"), symbol("S")


def test_a_slice_of_the_whole_axis_is_removed() -> None:
    model, (x,) = sources("B,S,f32")
    y = wire_one(model, "whole", Slice(1, 0, S), x)
    model.set_outputs([wire_one(model, "out", Exp(), y)])
    assert operators(checked_declutter(model, {"B": 2, "S": 3})) == ["Exp"]


def test_a_slice_of_a_slice_is_one_slice() -> None:
    model, (x,) = sources("B,10,f32")
    y = wire_one(model, "first", Slice(1, 2, 9), x)
    model.set_outputs([wire_one(model, "out", Slice(1, 1, 4), y)])
    simple = checked_declutter(model, {"B": 2})
    assert [node.op for node in simple.live_nodes() if isinstance(node.op, Slice)] == [Slice(1, 3, 6)]


def test_slices_of_different_axes_stay_two() -> None:
    model, (x,) = sources("8,10,f32")
    y = wire_one(model, "first", Slice(0, 2, 7), x)
    model.set_outputs([wire_one(model, "out", Slice(1, 1, 4), y)])
    assert operators(checked_declutter(model)) == ["Slice", "Slice"]


def test_a_stretched_tensor_is_stretched_less() -> None:
    model, (x, _) = sources("1,S,f32", "B,f32")
    y = wire_one(model, "stretch", MultiBroadcastTo((B, S)), x)
    y = wire_one(model, "a", Slice(1, 1, S), wire_one(model, "b", Slice(0, 0, 1), y))
    model.set_outputs([y])
    assert operators(checked_declutter(model, {"B": 3, "S": 4})) == ["Slice"]


def test_a_part_of_a_range_is_a_range() -> None:
    model, (step, _) = sources("i64", "B,f32")
    start, end = model.add_const("start", np.array(5)), model.add_const("end", np.array(1000))
    numbers = wire_one(model, "range", Range(B), start, end, step)
    model.set_outputs([wire_one(model, "out", Slice(0, 2, 4), numbers)])
    simple = checked_declutter(model, {"B": 5}, inputs=[np.array(199), np.zeros(5, np.float32)])
    assert "Slice" not in operators(simple)


def test_a_part_of_a_range_is_a_range_beside_the_whole_one() -> None:
    model, _ = sources("B,f32")
    start, end = model.add_const("start", np.array(5)), model.add_const("end", B * 3 + 5)
    numbers = wire_one(model, "range", Range(B), start, end, model.add_const("step", np.array(3)))
    model.set_outputs([numbers, wire_one(model, "out", Slice(0, 2, 4), numbers)])
    simple = checked_declutter(model, {"B": 5}, inputs=[np.zeros(5, np.float32)])
    assert "Slice" not in operators(simple)
