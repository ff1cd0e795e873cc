"""On the CPU runtime, operators with state compute what they mean, turn after turn, bit by bit."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from stream_runs import assert_streams
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen
from tract_pulse.ops.concat import PulseConcat
from tract_pulse.ops.delay import Delay
from tract_pulse.ops.mask import PulseMask
from tract_pulse.ops.pad import PulsePad
from tract_pulse.ops.range import PulseRange
from tract_pulse.transform import Pulse

import tract_core as tract
from tract_core.api.model import Model
from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.pad import PadConstant, PadEdge, PadReflect
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.apply import apply_transform

TYPES = ["f32", "f16", "f64", "i8", "i64", "bool", "complex_f32"]
AXES = [0, 1, 2]
NAMES = {"f32": "f4", "f16": "f2", "f64": "f8", "i8": "i1", "i64": "i8", "bool": "?", "complex_f32": "c8"}
END = symbol("S")


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


def plans(model: TypedModel) -> list[CpuPlan]:
    """Native plans, which leave nothing to the host; one goes step by step, as it looks at the clock."""
    step_by_step = model.clone()
    step_by_step.limits = replace(model.limits, run_deadline_s=1000)
    found = [CpuPlan(model, chosen(""), 1), CpuPlan(model, chosen("sse2")), CpuPlan(step_by_step, chosen(""))]
    for plan in found:
        assert {one.how for one in plan.explain().placements}.isdisjoint({"state", "numpy"})
    return found


def bits(outputs: Any) -> list[Any]:
    return [(one.shape, one.dtype, one.tobytes()) for one in map(np.asarray, outputs)]


def assert_same_turns(model: TypedModel, turns: list[list[np.ndarray]], length: int | None = None) -> None:
    """``length``: that of the signal, which is told before the last turn but one."""
    for plan in plans(model):
        reference, native = TypedSimplePlan(model).spawn(), plan.spawn()
        for turn, inputs in enumerate(turns):
            known = {"S": length} if length is not None and turn >= len(turns) - 2 else None
            want = bits(reference.run(inputs, symbols=known))
            assert bits(native.run(inputs, symbols=known)) == want, f"turn {turn}"
        again = plan.spawn()
        again.thaw(pickle.loads(pickle.dumps(native.freeze())))
        want = bits(reference.run(turns[0]))
        assert bits(again.run(turns[0])) == want
        assert bits(native.run(turns[0])) == want
        for state in (reference, native):
            state.reset()
        assert bits(native.run(turns[1])) == bits(reference.run(turns[1]))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("pulse", [0, 1, 2, 5, "P"])
@pytest.mark.parametrize(("delay", "overlap"), [(0, 0), (1, 0), (0, 2), (3, 4), (17, 0)])
def test_delays(axis, pulse, delay, overlap) -> None:
    rng = np.random.default_rng(0)
    sizes = [pulse] * 12 if pulse != "P" else [1, 1, 4, 4, 4, 0, 3, 40, 2, 2]
    for kind in TYPES if pulse == 2 else ["f32"]:
        turns = [[numbers(rng, axis, size, kind)] for size in sizes]
        assert_same_turns(around(Delay(axis, delay, overlap), sized(axis, pulse, kind)), turns)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("pulse", [1, 2, 5])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_paddings(axis, pulse, mode) -> None:
    rng = np.random.default_rng(1)
    for kind in TYPES if pulse == 2 else ["f32"]:
        value = Constant(np.array(-0.0 if kind[0] == "f" else 1, NAMES[kind]))
        made = {"constant": PadConstant(value), "edge": PadEdge(), "reflect": PadReflect()}[mode]
        for begin, before, after, overlap in [(3, 2, 2, 0), (0, 0, 4, 1), (2, 2, 0, 1), (4, 3, 3, 0)]:
            op = PulsePad(axis, before, after, begin, END + begin, made, min(overlap, pulse - 1))
            turns = [[numbers(rng, axis, pulse, kind)] for _ in range(7)]
            for length in (None, 5 * pulse - begin - 1, 6 * pulse - begin):
                assert_same_turns(around(op, sized(axis, pulse, kind)), turns, length and max(length, 1))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("pulse", [1, 2, 5])
def test_masks(axis, pulse) -> None:
    rng = np.random.default_rng(2)
    for kind in TYPES:
        value = Constant(np.array(-0.0 if kind[0] == "f" else 1, NAMES[kind]))
        turns = [[numbers(rng, axis, pulse, kind)] for _ in range(6)]
        model = around(PulseMask(axis, 3, END + 3, value), sized(axis, pulse, kind))
        for length in (None, 0, 3 * pulse, 5 * pulse - 4):
            assert_same_turns(model, turns, length)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("pulse", [1, 2, 5])
def test_concatenations(axis, pulse) -> None:
    rng = np.random.default_rng(3)
    for kind in TYPES if pulse == 2 else ["f32"]:
        whole = [numbers(rng, axis, size, kind) for size in (1, 2, 3, 0)]
        turns = [[*whole[:2], numbers(rng, axis, pulse, kind), *whole[2:]] for _ in range(8)]
        facts = [sized(axis, one.shape[axis], kind) for one in turns[0]]
        for length in (None, 6 * pulse - 3, 6 * pulse - 4):
            assert_same_turns(around(PulseConcat(axis, 2, 3, END + 3), *facts), turns, length and max(length, 0))


@pytest.mark.parametrize("kind", ["f32", "f16", "f64", "i8", "i64"])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_ranges(kind, length) -> None:
    model = around(PulseRange(length), kind, kind)
    for start, step in [(0, 1), (3, -2), (100, 7)]:
        pair = [np.array(start, NAMES[kind]), np.array(step / 8 if kind[0] == "f" else step, NAMES[kind])]
        assert_same_turns(model, [pair] * 40)


def test_a_window_does_not_take_another_size_than_it_has_kept() -> None:
    model = around(Delay(1, 2), "B,2,f32")
    for plan in plans(model):
        state = plan.spawn()
        state.run([np.ones((1, 2), "f4")])
        with pytest.raises(RunError, match=r"\(1, 2\) were kept from the pulse before, this one wants \(3, 2\)"):
            state.run([np.ones((3, 2), "f4")])
        assert np.array_equal(state.run([np.zeros((1, 2), "f4")])[0], np.ones((1, 2)))


def test_states_of_one_plan_do_not_share_what_they_keep() -> None:
    model = around(Delay(0, 2, 1), "2,f32")
    for plan in plans(model):
        states = [plan.spawn() for _ in range(5)]
        for turn in range(9):
            for number, state in enumerate(states):
                out = np.asarray(state.run([np.full(2, 10 * number + turn, "f4")])[0])
                before = [max(10 * number + one, 0) if one >= 0 else 0 for one in (turn - 2, turn - 1, turn - 1)]
                assert out.tolist() == before


def test_a_turn_on_a_fresh_state_keeps_nothing_for_the_next() -> None:
    plan = plans(around(Delay(0, 2), "2,f32"))[0]
    for _ in range(4):
        assert np.asarray(plan.spawn().run([np.ones(2, "f4")])[0]).tolist() == [0, 0]


def test_turns_that_are_like_the_one_before_are_one_call() -> None:
    plan = plans(around(Delay(0, 3), "2,f32"))[0]
    state, x = plan.spawn(), np.arange(2, dtype="f4")
    for turn in range(2):  # who keeps something gets ready when there is a second turn
        assert state.repeat([x + 2 * turn]) is None
        state.run([x + 2 * turn])
    found = [np.asarray(state.repeat([x + 2 * turn])[0]) for turn in range(2, 9)]
    assert np.concatenate(found).tolist() == list(range(1, 15))
    snapshot = state.freeze()
    after = np.asarray(state.repeat([x])[0]).tolist()
    state.thaw(snapshot)
    assert state.repeat([x]) is None
    assert np.asarray(state.run([x])[0]).tolist() == after
    state.reset()
    assert state.repeat([x]) is None
    assert np.asarray(state.run([x])[0]).tolist() == [0, 0]


def test_memory_for_large_delays_is_not_copied_in_every_turn() -> None:
    """What is brought to the front is less than a pulse per turn, on the whole."""
    plan = plans(around(Delay(1, 0, 256), "3,8,f32"))[0]
    state, begins = plan.spawn(), []
    for _ in range(100):
        state.run([np.ones((3, 8), "f4")])
        begins.append(int(state._memory._tensors[1][0]))
    moved = sum(now < before for before, now in pairwise(begins))
    assert moved * 256 <= 100 * 8


def recurrent_network() -> TypedModel:
    """A convolution, padded before and behind, with a running sum of tanh behind it, over x [S, 2]."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))
    weights = model.add_const("weights", np.random.default_rng(0).normal(size=(2, 2, 3)).astype("f4"))
    bias = model.add_const("bias", np.ones(2, "f4"))
    spec = PoolSpec(DataFormat.HWC, (3,), Explicit((2,), (1,)), (1,), (1,))
    y = wire_one(model, "conv", Conv(spec), x, weights, bias)
    y = wire_one(model, "sum", CumSum(0), wire_one(model, "tanh", Tanh(), y))
    model.set_outputs([y])
    return model.declutter()


def pulsed_runnable() -> tract.Runnable:
    return tract.runtime_for_name("cpu").prepare(Model(apply_transform(recurrent_network(), Pulse(4, "S"))))


def go_on(frozen: Any, pieces: list[np.ndarray]) -> list[bytes]:
    """In a process of its own, or in this one: what a frozen state gives for some pieces."""
    state = frozen.unfreeze()
    return [np.asarray(state.run([piece])[0]).tobytes() for piece in pieces]


def test_a_frozen_state_goes_on_in_another_process() -> None:
    runnable = pulsed_runnable()
    assert {one.how for one in runnable.explain().placements}.isdisjoint({"state", "numpy"})
    pieces = list(np.random.default_rng(1).normal(size=(12, 4, 2)).astype("f4"))
    state = runnable.spawn_state()
    for piece in pieces[:5]:
        state.run([piece])
    frozen = state.freeze()
    wanted = [np.asarray(state.run([piece])[0]).tobytes() for piece in pieces[5:]]
    assert go_on(frozen, pieces[5:]) == wanted
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(go_on, frozen, pieces[5:]).result() == wanted


def test_a_state_that_was_told_the_end_begins_anew_without_one() -> None:
    runnable, x = pulsed_runnable(), np.random.default_rng(2).normal(size=(12, 2)).astype("f4")
    fresh = [np.asarray(one) for one in runnable.stream([x])]
    state = runnable.spawn_state()
    first = [np.asarray(state.run([x[at : at + 4]])[0]) for at in (0, 4, 8)]
    for _ in range(2):
        state.reset()
        state.end_of_stream(7)
        for at in (0, 4, 8):
            state.run([x[at : at + 4]])
        state.reset()
        again = [np.asarray(state.run([x[at : at + 4]])[0]) for at in (0, 4, 8)]
        assert bits(again) == bits(first)
    assert bits(runnable.stream([x])) == bits(fresh)


def test_streams_run_side_by_side_and_fill_arrays_of_the_caller() -> None:
    runnable = pulsed_runnable()
    pieces = np.random.default_rng(3).normal(size=(3, 9, 4, 2)).astype("f4")
    alone = []
    for signal in pieces:
        state = runnable.spawn_state()
        alone.append([np.asarray(state.run([one])[0]).tobytes() for one in signal])
    states, out = [runnable.spawn_state() for _ in pieces], np.zeros((4, 2), "f4")
    for turn in range(9):
        for number, state in enumerate(states):
            state.run([pieces[number, turn]], out=[out])
            assert out.tobytes() == alone[number][turn]


def test_a_delay_that_several_nodes_want_is_there_once() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))
    spec, bias = (
        PoolSpec(DataFormat.HWC, (3,), Explicit((2,), (0,)), (1,), (1,)),
        model.add_const("b", np.ones(2, "f4")),
    )
    weights = [model.add_const(f"w{one}", np.full((2, 2, 3), one, "f4")) for one in range(2)]
    model.set_outputs([wire_one(model, f"conv{n}", Conv(spec), x, one, bias) for n, one in enumerate(weights)])
    pulsed = apply_transform(model, Pulse(4, "S"))
    assert [node.op for node in pulsed.nodes if isinstance(node.op, Delay)] == [Delay(0, 0, 2)]


@pytest.mark.parametrize(
    ("shape", "channels", "kernel", "dilation", "pads"),
    [
        ((1, 20, "S"), (32, 32), (3,), (128,), ((256,), (0,))),
        ((1, 16, 10, "S"), (32, 32), (3, 3), (1, 20), ((1, 40), (1, 0))),
        ((2, 33, "S", 5), (17, 3), (3, 3), (9, 1), ((18, 1), (0, 1))),
        ((1, 16, 10, "S"), (32, 32), (3, 3), (1, 20), ((1, 20), (1, 20))),
    ],
)
def test_windows_of_convolutions_are_read_where_they_are(shape, channels, kernel, dilation, pads) -> None:
    """In blocks of channels, with zeros around them: what is copied is the pulse, once, or what comes in and out."""
    model, rng, rank = TypedModel(), np.random.default_rng(0), len(kernel)
    x = model.add_source("x", parse_typed_fact(f"{','.join(map(str, shape))},f32", model.symbols))
    spec, before = PoolSpec(DataFormat.NCHW, kernel, Explicit(*pads), dilation, (1,) * rank), shape[1]
    for number, count in enumerate(channels):
        weights = model.add_const(f"w{number}", rng.normal(size=(count, before, *kernel)).astype("f4") / 9)
        bias = model.add_const(f"b{number}", np.ones(count, "f4"))
        x = wire_one(model, f"conv{number}", Conv(spec), x, weights, bias)
        x, before = wire_one(model, f"tanh{number}", Tanh(), x), count
    model.set_outputs([x])
    signal = rng.normal(size=[75 if size == "S" else size for size in shape]).astype("f4")
    streaming = assert_streams(model.declutter(), 8, [signal], runtime="cpu")
    positions = signal.size // 75 * 8
    for plan in plans(streaming):
        copied = [step.work for step in plan.steps if step.kernel.name in {"map", "transpose", "border"}]
        assert sum(copied) <= positions + 2 * 8 * (signal.size // 75 // shape[1]) * 2 * 32
