from __future__ import annotations

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.op import TypedOp
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, Reshape, RmAxis
from tract_core.ops.binary import Add, Lt
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp
from tract_core.ops.iff import Iff
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

PAIRS = [
    (AddAxis(1), RmAxis(1)),
    (MoveAxis(0, 2), MoveAxis(2, 0)),
    (Reshape(1, (3, 4), (12,)), Reshape(1, (12,), (3, 4))),
]


@pytest.mark.parametrize(("there", "back"), PAIRS, ids=str)
@pytest.mark.parametrize("op", [Exp(), Cast(DatumType.F64)], ids=str)
def test_inverse_axis_operators_meet(op: TypedOp, there: AxisOp, back: AxisOp) -> None:
    model, (x,) = sources("B,3,4,f32")
    y = wire_one(model, "inner", op, wire_one(model, "there", there, x))
    model.set_outputs([wire_one(model, "back", back, y)])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == [op.name]
    assert simple.outlet_name(simple.outputs[0]) == "back"


@pytest.mark.parametrize(("there", "back"), PAIRS, ids=str)
def test_operands_that_go_the_same_way_go_together(there: AxisOp, back: AxisOp) -> None:
    model, (x, y) = sources("B,3,4,f32", "B,3,4,f32")
    a, b = (wire_one(model, f"there{slot}", there, one) for slot, one in enumerate((x, y)))
    number = model.add_const("c", np.full((1,) * model.outlet_fact(a).rank, 0.5, np.float32))
    total = wire_one(model, "plus", Add(), wire_one(model, "sum", Add(), a, b), number)
    model.set_outputs([wire_one(model, "back", back, total)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Add", "Add"]


def test_a_constant_operand_is_rearranged() -> None:
    model, (x,) = sources("B,3,4,f32")
    moved = wire_one(model, "there", MoveAxis(1, 2), x)
    total = wire_one(model, "sum", Add(), moved, model.add_const("c", np.arange(3, dtype=np.float32).reshape(1, 1, 3)))
    model.set_outputs([wire_one(model, "back", MoveAxis(2, 1), total)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Add"]


def test_a_removed_axis_comes_back_for_constants() -> None:
    model, (x,) = sources("B,1,4,f32")
    flat = wire_one(model, "there", RmAxis(1), x)
    total = wire_one(model, "sum", Add(), flat, model.add_const("c", np.arange(4, dtype=np.float32).reshape(1, 4)))
    model.set_outputs([wire_one(model, "back", AddAxis(0), total)])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == ["Add", "MoveAxis"]


def test_a_new_axis_that_the_other_operand_stretches_stays() -> None:
    model, (x,) = sources("B,4,f32")
    outer = wire_one(model, "there", AddAxis(1), x)
    model.set_outputs([wire_one(model, "sum", Add(), outer, model.add_const("c", np.ones((1, 3, 4), np.float32)))])
    assert operators(checked_declutter(model, {"B": 2})) == ["AddAxis", "Add"]


def test_an_axis_operator_that_is_read_elsewhere_stays() -> None:
    model, (x,) = sources("B,3,4,f32")
    moved = wire_one(model, "there", MoveAxis(1, 2), x)
    model.set_outputs([wire_one(model, "out", Exp(), moved), moved])
    assert operators(checked_declutter(model, {"B": 2})) == ["MoveAxis", "Exp"]


def test_three_operands() -> None:
    model, (x, y) = sources("B,3,4,f32", "B,3,4,f32")
    a, b = (wire_one(model, f"there{slot}", MoveAxis(0, 2), one) for slot, one in enumerate((x, y)))
    less = wire_one(model, "less", Lt(), *(wire_one(model, f"exp{slot}", Exp(), x) for slot, x in enumerate((a, b))))
    zero = model.add_const("zero", np.zeros((1, 1, 1), np.float32))
    one = model.add_const("one", np.ones((1, 1, 1), np.float32))
    model.set_outputs([wire_one(model, "back", MoveAxis(2, 0), wire_one(model, "if", Iff(), less, one, zero))])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp", "Exp", "Lt", "Iff"]
