"""Loops give what is read, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Abs, Neg
from tract_core.ops.loop import Loop, wire_loop
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan


def _made_in_the_loop(*, read: bool) -> TypedModel:
    """``x = -x``, and ``abs(x)``, which is a scalar before the first iteration."""
    model = TypedModel()
    times = model.add_source("times", parse_typed_fact("i64"))
    x = model.add_source("x", parse_typed_fact("3,f32"))
    yes, nothing = model.add_const("yes", np.array(True)), model.add_const("nothing", np.array(0, np.float32))

    def body(facts):
        inner = model.empty_like()
        _, carried, _ = (
            inner.add_source(name, fact)
            for name, fact in zip(("i", "x", "untaken"), (parse_typed_fact("i64"), *facts), strict=True)
        )
        results = [wire_one(inner, name, op, carried) for name, op in (("next", Neg()), ("size", Abs()))]
        inner.set_outputs([inner.add_const("again", np.array(True)), *results])
        return inner, []

    outputs = wire_loop(model, "loop", times, yes, [x, nothing], make_body=body, untaken={1})
    model.set_outputs([outlet for outlet in outputs[: 1 + read] if outlet is not None])
    return model


@pytest.mark.parametrize("decluttered", [False, True])
def test_a_value_of_the_last_iteration(decluttered: bool) -> None:
    model = _made_in_the_loop(read=True)
    model.check_consistency()
    plan = TypedSimplePlan(model.declutter() if decluttered else model)
    x = np.array([1, -2, 3], np.float32)
    for times in (1, 2, 3):
        found = plan.run([np.array(times), x])
        np.testing.assert_array_equal(found[0], x * (-1) ** times)
        np.testing.assert_array_equal(found[1], np.abs(x))
    with pytest.raises(RunError, match="the loop makes no iteration"):
        plan.run([np.array(0), x])


def test_one_that_nothing_reads_is_left_out_with_what_it_wants() -> None:
    model = _made_in_the_loop(read=False).declutter()
    (op,) = [node.op for node in model.live_nodes() if isinstance(node.op, Loop)]
    assert op.last == 0
    assert not any(isinstance(node.op, Abs) for node in op.body.live_nodes())
    x = np.array([1, -2, 3], np.float32)
    np.testing.assert_array_equal(TypedSimplePlan(model).run([np.array(0), x])[0], x)


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_constant_that_every_iteration_sees_is_one_of_the_body(times: int) -> None:
    model = TypedModel()
    limit, x = (model.add_source(name, parse_typed_fact(fact)) for name, fact in (("times", "i64"), ("x", "3,f32")))
    yes, held = model.add_const("yes", np.array(True)), model.add_const("held", np.array([1, 2, 3], np.float32))

    def body(facts):
        inner = model.empty_like()
        facts = [parse_typed_fact("i64"), *facts, parse_typed_fact("3,f32"), parse_typed_fact("3,f32")]
        sources = [inner.add_source(f"in{slot}", fact) for slot, fact in enumerate(facts)]
        total = wire_one(inner, "total", Add(), wire_one(inner, "sum", Add(), sources[1], sources[2]), sources[3])
        inner.set_outputs([inner.add_const("again", np.array(True)), total])
        return inner, [held, x]

    model.set_outputs(wire_loop(model, "loop", limit, yes, [x], make_body=body))
    lighter = model.clone().declutter()
    (node,) = [node for node in lighter.live_nodes() if isinstance(node.op, Loop)]
    assert len(node.inputs) == 4
    given = [np.array(times), np.array([0.5, -1, 4], np.float32)]
    wanted = given[1] * (times + 1) + times * np.array([1, 2, 3], np.float32)
    for one in (model, lighter):
        np.testing.assert_array_equal(TypedSimplePlan(one).run(given)[0], wanted)
