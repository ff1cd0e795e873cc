from __future__ import annotations

import numpy as np
import pytest

from tract_core.dims import Dim, parse_dim
from tract_core.errors import FactError
from tract_core.model.bodies import sizes_outside
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops import submodel
from tract_core.ops.axis import MoveAxis, full_reshape
from tract_core.ops.elementwise import Exp
from tract_core.ops.softmax import Softmax
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan


def turned(fact: str = "B,S,3,f32") -> SubmodelOp:
    """exp of a softmax over the last axis, the first two axes exchanged"""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    soft = wire_one(model, "soft", Softmax((2,)), wire_one(model, "move", MoveAxis(0, 1), x))
    model.set_outputs([wire_one(model, "exp", Exp(), soft)])
    return SubmodelOp(model)


def test_facts_take_the_sizes_outside() -> None:
    (found,) = turned().output_facts([parse_typed_fact("2*N,7,3,f32")])
    assert str(found) == "7,2*N,3,f32"


def test_an_input_that_does_not_fit_is_named() -> None:
    with pytest.raises(FactError, match=r"SubmodelOp: input 0 \('x'\) is 2,7,4,f32, the model wants B,S,3,f32"):
        turned().output_facts([parse_typed_fact("2,7,4,f32")])
    with pytest.raises(FactError, match=r"input 0 \('x'\) is 2,3,f32"):
        turned().output_facts([parse_typed_fact("2,3,f32")])


def test_axes_pass_through_the_inner_model() -> None:
    op, x = turned(), parse_typed_fact("B,S,3,f32")
    mapping = submodel.axes(op, [x], op.output_facts([x]))
    assert [mapping.track(("in", 0, axis), ("out", 0)) for axis in range(3)] == [1, 0, None]


def test_sizes_outside_may_have_other_names() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,M,3,f32", model.symbols))
    model.set_outputs(model.wire_node("sub", turned(), [x]))
    array = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    (found,) = TypedSimplePlan(model).run([array])
    powers = np.exp(array.astype(np.float64).swapaxes(0, 1))
    np.testing.assert_allclose(found, np.exp(powers / powers.sum(axis=2, keepdims=True)), rtol=1e-5)


def test_a_name_may_stand_for_two_sizes() -> None:
    inner = TypedModel()
    x = inner.add_source("x", parse_typed_fact("S,f32", inner.symbols))
    inner.set_outputs([wire_one(inner, "exp", Exp(), x)])
    model = TypedModel()
    source = model.add_source("x", parse_typed_fact("S,S,f32", model.symbols))
    flat = wire_one(model, "flat", full_reshape(*shapes("S,S", "S*S")), source)
    model.set_outputs(model.wire_node("inner", SubmodelOp(inner), [flat]))
    (found,) = TypedSimplePlan(model).run([np.zeros((2, 2), np.float32)])
    assert found.tolist() == [1, 1, 1, 1]


def shapes(*texts: str) -> list[tuple[Dim, ...]]:
    return [tuple(map(parse_dim, text.split(","))) for text in texts]


def test_asking_what_sizes_are_outside_changes_nothing() -> None:
    body = TypedModel()
    for name in "ab":
        body.set_outputs([body.add_source(name, parse_typed_fact("S,f32", body.symbols))])
    first = sizes_outside(body, 0, parse_typed_fact("3,f32"))
    assert first == {"S": 3}
    assert sizes_outside(body, 1, parse_typed_fact("4,f32"), first) is None
    assert sizes_outside(body, 1, parse_typed_fact("3,f32"), first) == {"S": 3}
    assert sizes_outside(body, 1, parse_typed_fact("4,f32")) == {"S": 4}
    assert first == {"S": 3}
