from __future__ import annotations

import numpy as np
import pytest

from tract_core.ops.elementwise import Exp, Neg
from tract_core.ops.iff import Iff
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


@pytest.mark.parametrize(("condition", "wanted"), [([[True]], "Exp"), ([[False]], "Neg")])
def test_a_known_condition_chooses(condition: list[list[bool]], wanted: str) -> None:
    model, (x, y) = sources("B,3,f32", "B,3,f32")
    choices = wire_one(model, "exp", Exp(), x), wire_one(model, "neg", Neg(), y)
    model.set_outputs([wire_one(model, "out", Iff(), model.add_const("c", np.array(condition)), *choices)])
    assert operators(checked_declutter(model, {"B": 2})) == [wanted]


def test_what_is_chosen_is_stretched_as_before() -> None:
    model, (x, y) = sources("1,3,f32", "B,3,f32")
    choices = wire_one(model, "exp", Exp(), x), wire_one(model, "neg", Neg(), y)
    model.set_outputs([wire_one(model, "out", Iff(), model.add_const("c", np.array([[True]])), *choices)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp", "MultiBroadcastTo"]


def test_a_mixed_condition_stays() -> None:
    model, (x, y) = sources("B,3,f32", "B,3,f32")
    mixed = model.add_const("c", np.array([[True, False, True]]))
    model.set_outputs([wire_one(model, "out", Iff(), mixed, x, y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Iff"]


def test_a_choice_between_equals_is_none() -> None:
    model, (x, c) = sources("B,3,f32", "B,3,bool")
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([wire_one(model, "out", Iff(), c, y, y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp"]
