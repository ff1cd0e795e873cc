"""What operators keep on the device between turns: as the node executor keeps it, also after a turn that is refused."""

from __future__ import annotations

import pickle

import mlx.core as mx
import numpy as np
import pytest
from on_mlx import model_of, plan_of
from tract_metal.plan import MetalPlan
from tract_pulse.ops.delay import Delay

from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.gather import Gather
from tract_core.runtime.plan import TypedSimplePlan

RNG = np.random.default_rng(0)


def pulses(count: int) -> list[np.ndarray]:
    return [RNG.standard_normal((2, 3)).astype("f4") for _ in range(count)]


@pytest.mark.parametrize("delay", [Delay(1, 0, 0), Delay(1, 2, 0), Delay(1, 0, 4), Delay(1, 5, 3)])
def test_a_delay_is_that_of_the_core(delay: Delay) -> None:
    model = model_of(delay, "2,3,f32")
    ours, right = plan_of(model).spawn(), TypedSimplePlan(model).spawn()
    for pulse in pulses(5):
        np.testing.assert_array_equal(ours.run([pulse])[0], right.run([pulse])[0])


def test_states_freeze_and_go_on_elsewhere() -> None:
    model = model_of(Delay(1, 2, 1), "2,3,f32")
    state = plan_of(model).spawn()
    first, second, third = pulses(3)
    assert pickle.loads(pickle.dumps(state.freeze())).states == {}
    state.run([first])
    frozen = pickle.loads(pickle.dumps(state.freeze()))
    wanted = state.run([second])[0]
    state.run([third])
    other = plan_of(model).spawn()
    other.thaw(frozen)
    np.testing.assert_array_equal(other.run([second])[0], wanted)
    reference = TypedSimplePlan(model).spawn()
    reference.thaw(frozen)
    np.testing.assert_array_equal(reference.run([second])[0], wanted)
    state.reset()
    np.testing.assert_array_equal(state.run([first])[0], plan_of(model).spawn().run([first])[0])


def refusing() -> TypedModel:
    """A delay, and a row that an index picks: where the index is outside, the turn is refused."""
    model = TypedModel()
    x, index = (
        model.add_source(name, parse_typed_fact(fact, model.symbols))
        for name, fact in (("x", "2,3,f32"), ("i", "1,i64"))
    )
    (late,) = model.wire_node("late", Delay(1, 3), [x])
    model.set_outputs(model.wire_node("row", Gather(0), [late, index]))
    return model


def test_a_turn_that_is_refused_leaves_states_as_they_were() -> None:
    plan = MetalPlan(refusing(), plan_of(model_of(Gather(0), "2,f32", "1,i64")).device)
    assert not plan.hosted
    state, (first, second, third) = plan.spawn(), pulses(3)
    state.run([first, np.array([0])])
    with pytest.raises(RunError, match=r"node 'row' .*index 7 is outside axis 0"):
        state.run([second, np.array([7])])
    np.testing.assert_array_equal(state.run([third, np.array([1])])[0], first[1:])


def test_a_state_of_other_sizes_is_refused() -> None:
    state = plan_of(model_of(Delay(1, 2), "B,3,f32")).spawn()
    state.run([np.ones((2, 3), "f4")])
    with pytest.raises(RunError, match=r"node 'op'"):
        state.run([np.ones((4, 3), "f4")])
    np.testing.assert_array_equal(state.run([np.zeros((2, 3), "f4")])[0], [[1, 1, 0]] * 2)


def test_a_turn_that_fails_in_mlx_says_so_until_the_state_is_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept was let go of when nothing could refuse the turn any more."""
    state, (first, second) = plan_of(model_of(Delay(1, 2), "2,3,f32")).spawn(), pulses(2)
    state.run([first])
    frozen = state.freeze()
    wanted = state.run([second])[0]

    def fail(*arrays: object) -> None:
        raise RuntimeError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(mx, "eval", fail)
        with pytest.raises(RunError, match="MLX says: no memory"):
            state.run([second])
    for lost in (lambda: state.run([second]), state.freeze):
        with pytest.raises(RunError, match="what this state kept is lost") as caught:
            lost()
        assert "reset the state" in str(caught.value)
    state.thaw(frozen)
    np.testing.assert_array_equal(state.run([second])[0], wanted)
    state.reset()
    assert state.freeze().states == {}
