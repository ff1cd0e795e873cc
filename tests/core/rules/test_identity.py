from __future__ import annotations

from tract_core.model.identity import Identity
from tract_core.ops.elementwise import Exp
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


def test_an_identity_is_removed() -> None:
    model, (x,) = sources("B,3,f32")
    y = wire_one(model, "same", Identity(), x)
    model.set_outputs([wire_one(model, "out", Exp(), y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp"]


def test_the_output_takes_over_the_name() -> None:
    model, (x,) = sources("B,3,f32")
    model.set_outputs([wire_one(model, "out", Identity(), wire_one(model, "exp", Exp(), x))])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == ["Exp"]
    assert simple.outlet_name(simple.outputs[0]) == "out"


def test_an_input_handed_on_as_output_keeps_both_names() -> None:
    model, (x,) = sources("B,3,f32")
    first, second = wire_one(model, "a", Identity(), x), wire_one(model, "b", Identity(), x)
    model.set_outputs([first, wire_one(model, "c", Identity(), second)])
    simple = checked_declutter(model, {"B": 2})
    assert [simple.outlet_name(outlet) for outlet in simple.outputs] == ["a", "c"]
    assert simple.outlet_name(simple.inputs[0]) == "x0"
