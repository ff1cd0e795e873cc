"""On the virtual GPU, operators with state compute what they mean, turn after turn, bit by bit."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from tract_cuda.driver.device import Device
from tract_cuda.driver.library import Driver
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.testing.virtual import VirtualGpu
from tract_pulse.ops.concat import PulseConcat
from tract_pulse.ops.delay import Delay
from tract_pulse.ops.mask import PulseMask
from tract_pulse.ops.pad import PulsePad
from tract_pulse.ops.range import PulseRange
from tract_pulse.transform import Pulse

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.gather import Gather
from tract_core.ops.pad import PadConstant, PadEdge, PadReflect
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.apply import apply_transform

NAMES = {"f32": "f4", "f16": "f2", "f64": "f8", "i8": "i1", "i64": "i8", "bool": "?"}
END = symbol("S")
TARGET = Target(arch_named("sm_80") or pytest.fail("there is none"), 4)


@cache
def gpu() -> VirtualGpu:
    return VirtualGpu()


@cache
def device() -> Device:
    return Device(Driver(gpu()), 0)


def plan_of(model: TypedModel) -> CudaPlan:
    """A plan that leaves nothing to the host."""
    found = CudaPlan(model, device(), TARGET)
    assert not found.hosted()
    return found


def around(op: TypedOp, *facts: str) -> TypedModel:
    """One operator, with an input for each fact."""
    model = TypedModel()
    inputs = [model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("op", op, inputs))
    return model


def sized(axis: int, size: Any, kind: str) -> str:
    sizes = ["2", "3", "2"]
    sizes[axis] = str(size)
    return ",".join([*sizes, kind])


def numbers(rng: np.random.Generator, axis: int, size: int, kind: str) -> np.ndarray:
    """Every kind of number, with some that are none and zeros of both signs."""
    shape = [2, 3, 2]
    shape[axis] = size
    found = rng.integers(-100, 100, shape).astype(NAMES[kind])
    if found.dtype.kind == "f":
        found[rng.random(shape) < 0.2] = np.nan
        found[rng.random(shape) < 0.2] = -0.0
    return found


def bits(outputs: Any) -> list[Any]:
    return [(one.shape, one.dtype, one.tobytes()) for one in map(np.asarray, outputs)]


def assert_same_turns(model: TypedModel, turns: list[list[np.ndarray]], length: int | None = None) -> None:
    """``length``: that of the signal, which is told before the last turn but one."""
    plan, meaning = plan_of(model), TypedSimplePlan(model)
    right, state = meaning.spawn(), plan.spawn()
    for turn, inputs in enumerate(turns):
        known = {"S": length} if length is not None and turn >= len(turns) - 2 else None
        want = bits(right.run(inputs, symbols=known))
        assert bits(state.run(inputs, symbols=known)) == want, f"turn {turn}"
    again, other = plan.spawn(), meaning.spawn()
    again.thaw(pickle.loads(pickle.dumps(right.freeze())))
    other.thaw(state.freeze())
    want = bits(right.run(turns[0]))
    assert bits(again.run(turns[0])) == want
    assert bits(other.run(turns[0])) == want
    assert bits(state.run(turns[0])) == want
    for one in (right, state):
        one.reset()
    assert bits(state.run(turns[1])) == bits(right.run(turns[1]))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("pulse", [0, 1, 2, 5, "P"])
def test_delays(axis: int, pulse: Any) -> None:
    rng = np.random.default_rng(0)
    for delay, overlap in [(0, 0), (1, 0), (0, 2), (3, 4)]:
        sizes = [pulse] * 6 if pulse != "P" else [1, 4, 4, 0, 3, 9]
        for kind in NAMES if (pulse, delay) == (2, 3) else ["f32"]:
            turns = [[numbers(rng, axis, size, kind)] for size in sizes]
            assert_same_turns(around(Delay(axis, delay, overlap), sized(axis, pulse, kind)), turns)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize(("axis", "pulse"), [(0, 2), (1, 1), (2, 5)])
def test_paddings(axis: int, pulse: int, mode: str) -> None:
    rng = np.random.default_rng(1)
    for kind in ["f32", "i64"] if pulse == 2 else ["f32"]:
        value = Constant(np.array(-0.0 if kind[0] == "f" else 1, NAMES[kind]))
        made = {"constant": PadConstant(value), "edge": PadEdge(), "reflect": PadReflect()}[mode]
        for begin, before, after, overlap in [(3, 2, 2, 0), (0, 0, 4, 1), (2, 2, 0, 1), (4, 3, 3, 0)]:
            op = PulsePad(axis, before, after, begin, END + begin, made, min(overlap, pulse - 1))
            turns = [[numbers(rng, axis, pulse, kind)] for _ in range(7)]
            for length in (None, 5 * pulse - begin - 1, 6 * pulse - begin):
                assert_same_turns(around(op, sized(axis, pulse, kind)), turns, length and max(length, 0))


@pytest.mark.parametrize(("axis", "pulse"), [(0, 2), (1, 1), (2, 5)])
def test_masks(axis: int, pulse: int) -> None:
    rng = np.random.default_rng(2)
    for kind, name in NAMES.items():
        value = Constant(np.array(-0.0 if kind[0] == "f" else 1, name))
        turns = [[numbers(rng, axis, pulse, kind)] for _ in range(6)]
        for length in (None, 0, 5 * pulse - 4):
            assert_same_turns(around(PulseMask(axis, 3, END + 3, value), sized(axis, pulse, kind)), turns, length)


@pytest.mark.parametrize(("axis", "pulse"), [(0, 2), (1, 1), (2, 5)])
def test_concatenations(axis: int, pulse: int) -> None:
    rng = np.random.default_rng(3)
    whole = [numbers(rng, axis, size, "f32") for size in (1, 2, 3, 0)]
    turns = [[*whole[:2], numbers(rng, axis, pulse, "f32"), *whole[2:]] for _ in range(8)]
    facts = [sized(axis, one.shape[axis], "f32") for one in turns[0]]
    for length in (None, 6 * pulse - 3, 6 * pulse - 4):
        assert_same_turns(around(PulseConcat(axis, 2, 3, END + 3), *facts), turns, length and max(length, 0))


@pytest.mark.parametrize("kind", ["f32", "f16", "f64", "i8", "i64"])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_ranges(kind: str, length: int) -> None:
    for start, step in [(0, 1), (100, 7)]:
        pair = [np.array(start, NAMES[kind]), np.array(step / 8 if kind[0] == "f" else step, NAMES[kind])]
        assert_same_turns(around(PulseRange(length), kind, kind), [pair] * 9)


def test_a_delay_does_not_take_another_size_than_it_has_kept() -> None:
    state = plan_of(around(Delay(1, 2), "B,2,f32")).spawn()
    state.run([np.ones((1, 2), "f4")])
    with pytest.raises(RunError, match=r"\(1, 2\) were kept from the pulse before, this one wants \(3, 2\)"):
        state.run([np.ones((3, 2), "f4")])
    assert np.array_equal(state.run([np.zeros((1, 2), "f4")])[0], np.ones((1, 2)))


def test_states_of_one_plan_do_not_share_what_they_keep() -> None:
    plan = plan_of(around(Delay(0, 2, 1), "2,f32"))
    states = [plan.spawn() for _ in range(3)]
    for turn in range(4):
        for number, state in enumerate(states):
            out = np.asarray(state.run([np.full(2, 10 * number + turn, "f4")])[0])
            before = [10 * number + one if one >= 0 else 0 for one in (turn - 2, turn - 1, turn - 1)]
            assert out.tolist() == before


def test_a_turn_that_is_refused_does_not_advance_a_stream() -> None:
    model = TypedModel()
    x, rows = (
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in (("x", "2,f32"), ("i", "1,i64"))
    )
    model.set_outputs([wire_one(model, "row", Gather(0), wire_one(model, "late", Delay(0, 1, 1), x), rows)])
    state, found = plan_of(model).spawn(), list[float]()
    for turn in range(4):
        inputs = [np.array([2 * turn, 2 * turn + 1], "f4"), np.array([2 if turn != 2 else 7])]
        if turn == 2:
            with pytest.raises(RunError, match="index 7 is outside axis 0"):
                state.run(inputs)
        else:
            found += state.run(inputs)[0].tolist()
    assert found == [0, 2, 6]


def test_a_streaming_network_stays_on_the_device() -> None:
    """A convolution, padded before and behind, with a running sum of tanh behind it: one graph for each turn."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))
    weights = model.add_const("weights", np.random.default_rng(0).normal(size=(2, 2, 3)).astype("f4"))
    spec = PoolSpec(DataFormat.HWC, (3,), Explicit((2,), (1,)), (1,), (1,))
    y = wire_one(model, "conv", Conv(spec), x, weights, model.add_const("bias", np.ones(2, "f4")))
    model.set_outputs([wire_one(model, "sum", CumSum(0), wire_one(model, "tanh", Tanh(), y))])
    pulsed = apply_transform(model.declutter(), Pulse(4, "S"))
    plan = plan_of(pulsed)
    state, right = plan.spawn(), TypedSimplePlan(pulsed).spawn()
    pieces = list(np.random.default_rng(1).normal(size=(8, 4, 2)).astype("f4"))
    for turn, piece in enumerate(pieces):
        known = {"S": 30} if turn >= 6 else None
        gpu().log.clear()
        (found,), (wanted,) = state.run([piece], symbols=known), right.run([piece], symbols=known)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        if turn in {3, 4, 5}:
            assert gpu().log.count("cuGraphLaunch") == 1
            assert "cuGraphInstantiateWithFlags" not in gpu().log
