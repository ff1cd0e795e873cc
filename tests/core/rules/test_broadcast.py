from __future__ import annotations

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.elementwise import Exp
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

B = symbol("B")


def test_a_stretch_into_the_same_shape_is_removed() -> None:
    model, (x,) = sources("B,3,f32")
    y = wire_one(model, "stretch", MultiBroadcastTo((1, 3)), x)
    model.set_outputs([wire_one(model, "out", Exp(), y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp"]


def test_a_stretch_goes_behind_element_wise_operators_and_merges() -> None:
    model, (x,) = sources("1,3,f32")
    y = wire_one(model, "a", MultiBroadcastTo((4, 3)), x)
    y = wire_one(model, "exp", Exp(), y)
    y = wire_one(model, "b", MultiBroadcastTo((2, 4, 3)), y)
    model.set_outputs([y])
    simple = checked_declutter(model)
    assert operators(simple) == ["Exp", "MultiBroadcastTo"]
    assert simple.outlet_fact(simple.node_by_name("b").inputs[0]).shape == (1, 3)


def test_a_stretch_read_twice_stays_where_it_is() -> None:
    model, (x,) = sources("1,3,f32")
    y = wire_one(model, "a", MultiBroadcastTo((4, 3)), x)
    model.set_outputs([wire_one(model, "exp", Exp(), y), y])
    assert operators(checked_declutter(model)) == ["MultiBroadcastTo", "Exp"]


def test_a_moved_axis_goes_before_the_stretch() -> None:
    model, (x, _) = sources("3,f32", "B,f32")
    y = wire_one(model, "a", MultiBroadcastTo((B, 3)), x)
    model.set_outputs([wire_one(model, "out", MoveAxis(0, 1), y)])
    assert operators(checked_declutter(model, {"B": 4}))[-1] == "MultiBroadcastTo"


def test_a_binary_operator_takes_a_stretched_operand_as_it_was() -> None:
    model, (x, y) = sources("B,4,3,f32", "3,f32")
    stretched = wire_one(model, "a", MultiBroadcastTo((B, 4, 3)), y)
    model.set_outputs([wire_one(model, "out", Add(), x, stretched)])
    simple = checked_declutter(model, {"B": 2})
    assert "MultiBroadcastTo" not in operators(simple)
    assert simple.outlet_fact(simple.outputs[0]).shape == (B, 4, 3)


def test_a_stretch_that_makes_the_shape_stays() -> None:
    model, (x,) = sources("1,3,f32")
    stretched = wire_one(model, "a", MultiBroadcastTo((4, 3)), x)
    bias = model.add_const("bias", np.float32([[1, 2, 3]]))
    model.set_outputs([wire_one(model, "out", Add(), stretched, bias)])
    assert "MultiBroadcastTo" in operators(checked_declutter(model))


def test_a_stretch_names_the_shape_that_comes_of_it() -> None:
    model, (x,) = sources("B,4,1,f32")
    model.set_outputs([wire_one(model, "out", MultiBroadcastTo((2, 1, 1, 3)), x)])
    simple = checked_declutter(model, {"B": 5})
    assert simple.node_by_name("out").op == MultiBroadcastTo((2, B, 4, 3))


def test_a_known_number_goes_before_the_stretch() -> None:
    model, (x,) = sources("B,1,3,f32")
    wide = wire_one(model, "wide", MultiBroadcastTo((B, 4, 3)), x)
    scale = model.add_const("scale", np.float32([[[0.5]]]))
    model.set_outputs([wire_one(model, "out", Mul(), wide, scale)])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple)[-2:] == ["Mul", "MultiBroadcastTo"]
    assert simple.outlet_fact(simple.node_by_name("out").inputs[0]).shape == (B, 1, 3)


def test_a_constant_as_wide_as_the_stretch_and_whole_numbers_stay_behind_it() -> None:
    for fact, value in (("B,1,f32", np.float32([[1, 2, 3]])), ("B,1,i64", np.int64([[3]]))):
        model, (x,) = sources(fact)
        wide = wire_one(model, "wide", MultiBroadcastTo((B, 3)), x)
        model.set_outputs([wire_one(model, "out", Mul(), wide, model.add_const("factor", value))])
        assert operators(checked_declutter(model, {"B": 2}))[-1] == "Mul"
