"""Loops give what is read, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
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
