from __future__ import annotations

from tract_core.ops.elementwise import Exp, Neg
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter_with_report
from tract_core.testing.declutter import checked_declutter, operators, sources


def test_a_submodel_in_a_submodel_is_simplified() -> None:
    inner, (x,) = sources("N,f32")
    inner.set_outputs([wire_one(inner, "b", Neg(), wire_one(inner, "a", Neg(), wire_one(inner, "exp", Exp(), x)))])
    middle, (y,) = sources("N,f32")
    middle.set_outputs([wire_one(middle, "inner", SubmodelOp(inner), y)])
    model, (z,) = sources("B,f32")
    model.set_outputs([wire_one(model, "middle", SubmodelOp(middle), z)])

    simple = checked_declutter(model, {"B": 3})

    op = simple.node_by_name("middle").op
    assert isinstance(op, SubmodelOp)
    deeper = op.model.node_by_name("inner").op
    assert isinstance(deeper, SubmodelOp)
    assert operators(deeper.model) == ["Exp"]
    assert operators(inner) == ["Exp", "Neg", "Neg"], "the body that was given stays as it was"


def test_bodies_in_normal_form_are_left_alone() -> None:
    inner, (x,) = sources("N,f32")
    inner.set_outputs([wire_one(inner, "exp", Exp(), x)])
    model, (z,) = sources("B,f32")
    model.set_outputs([wire_one(model, "inner", SubmodelOp(inner), z)])
    assert not declutter_with_report(model).changed


def test_a_body_that_many_operators_hold_is_simplified_once() -> None:
    """The paths through this model are 2 to the power of 30."""
    body, (x,) = sources("N,f32")
    body.set_outputs([wire_one(body, "b", Neg(), wire_one(body, "a", Neg(), wire_one(body, "exp", Exp(), x)))])
    for _ in range(30):
        model, (outlet,) = sources("N,f32")
        for name in ("first", "second"):
            outlet = wire_one(model, name, SubmodelOp(body), outlet)
        model.set_outputs([outlet])
        body = model

    simple = body.clone().declutter()

    for _ in range(30):
        first, second = (simple.node_by_name(name).op for name in ("first", "second"))
        assert isinstance(first, SubmodelOp)
        assert isinstance(second, SubmodelOp)
        assert first.model is second.model
        simple = first.model
    assert operators(simple) == ["Exp"]
