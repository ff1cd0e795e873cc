"""Loops on the device, for lengths that nobody knows when they are compiled, as the interpreter runs them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tract_cuda.state
from on_virtual import device, run
from tract_cuda.compile import compiled
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.program import CudaProgram, Repeat, launches_in
from tract_cuda.program_check import check_program

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.gather import Gather
from tract_core.ops.random import Distribution, RandomLike
from tract_core.ops.recurrent_wiring import Direction, RecurrentInputs, RecurrentOptions, wire_gru, wire_lstm, wire_rnn
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.runtime.plan import TypedSimplePlan

RNG = np.random.default_rng(11)
TARGET = Target(arch_named("sm_80") or pytest.fail("there is none"), 4)


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def sums(chunk: int = 1, *, length: str = "T", skip: int = 0, reset: bool = True, external: bool = False) -> TypedModel:
    """A state grows by what a slice holds; all states, the last one, the slices, the last one, a number are given."""
    body, model = TypedModel(), TypedModel()
    x, state = source(body, "x", f"{abs(chunk)},B,f32"), source(body, "state", "B,f32")
    (total,) = body.wire_node("total", Reduce((0,), Reducer.SUM), [x])
    (total,) = body.wire_node("flat", RmAxis(0), [total])
    (grown,) = body.wire_node("grown", Add(), [state, total])
    (row,) = body.wire_node("row", AddAxis(0), [grown])
    one = body.add_const("one", np.float32([3]))
    body.set_outputs([row, grown, x, one])
    inputs = [source(model, "x", f"{length},B,f32"), source(model, "state", "B,f32")]
    outputs = (
        OutputMapping(full=FullOutput(0, 0, -1)),
        OutputMapping(state=True, last=1),
        OutputMapping(full=FullOutput(4, 0, chunk), last=2),
        OutputMapping(last=3),
    )
    op = Scan(body, (ScannedInput(0, chunk), StateInput()), outputs, skip, reset, external)
    model.set_outputs(model.wire_node("loop", op, inputs))
    return model


def check(model: TypedModel, *inputs: np.ndarray) -> None:
    """What the interpreter gives, no node being left to the host."""
    same(run(model, *inputs, seeds=(0,)), TypedSimplePlan(model).run(list(inputs)))


def same(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    for one, right in zip(found, wanted, strict=True):
        assert one.shape == right.shape
        assert one.dtype == right.dtype
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-5)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("chunk", [1, -1, 2, -2, 3, -3])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
def test_any_length_and_a_last_slice_that_is_not_whole(length: int, chunk: int) -> None:
    check(sums(chunk), floats(length, 3), floats(3))


@pytest.mark.parametrize("skip", [1, 3, 9])
@pytest.mark.parametrize("length", [0, 1, 4, 7])
def test_iterations_that_are_skipped_leave_zeros_and_the_state(length: int, skip: int) -> None:
    check(sums(-2, skip=skip), floats(length, 3), floats(3))


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_state_that_the_caller_hands_on(batch: int) -> None:
    check(sums(reset=False, external=True), floats(6, batch), floats(batch))


def test_what_is_compiled_does_not_grow_with_the_length() -> None:
    plan = CudaPlan(sums(), device(0), TARGET)
    launches = len(list(launches_in(plan.program.steps)))
    state = plan.spawn()
    for length in (2, 600, 0):
        x = floats(length, 3)
        (_, last, *_) = state.run([x, np.zeros(3, "f4")])
        np.testing.assert_allclose(last, x.sum(0, dtype="f8"), atol=1e-4)
    known = CudaPlan(sums(length="600"), device(0), TARGET).program
    assert len(list(launches_in(known.steps))) <= launches


def test_a_loop_is_told_as_one_step() -> None:
    plan = CudaPlan(sums(), device(0), TARGET)
    (step,) = (one for one in plan.program.steps if isinstance(one, Repeat))
    assert str(step.count) == "T"
    assert "T times (" in plan.explain().placements[0].why


def test_more_launches_than_a_graph_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tract_cuda.state, "MOST_NODES", 8)
    check(sums(), floats(30, 3), floats(3))


def test_loops_in_loops() -> None:
    """For each row, its elements one by one; the inner loop reads a slice of a slice, and gives its state on."""
    inner, body, model = TypedModel(), TypedModel(), TypedModel()
    x, state = source(inner, "x", "1,f32"), source(inner, "state", "1,f32")
    (grown,) = inner.wire_node("tanh", Tanh(), inner.wire_node("grown", Add(), [state, x]))
    inner.set_outputs([grown, grown])
    mapping = (OutputMapping(full=FullOutput(0, 0)), OutputMapping(state=True, last=1))
    loop = Scan(inner, (ScannedInput(0), StateInput()), mapping, reset_every_turn=True)
    rows, start = source(body, "rows", "1,C,f32"), source(body, "start", "1,f32")
    (row,) = body.wire_node("row", RmAxis(0), [rows])
    given, end = body.wire_node("inner", loop, [row, start])
    (given,) = body.wire_node("given", AddAxis(0), [given])
    body.set_outputs([given, end])
    mapping = (OutputMapping(full=FullOutput(0, 0, -1)), OutputMapping(state=True, last=1))
    outer = Scan(body, (ScannedInput(0, -1), StateInput()), mapping, reset_every_turn=True)
    model.set_outputs(model.wire_node("outer", outer, [source(model, "x", "T,C,f32"), source(model, "s", "1,f32")]))
    for length, columns in ((3, 4), (1, 1), (2, 0), (0, 3)):
        check(model, floats(length, columns), floats(1))


def test_weights_that_each_iteration_reads_and_columns_that_are_scanned() -> None:
    body, model = TypedModel(), TypedModel()
    x, w, state = source(body, "x", "B,1,f32"), source(body, "w", "B,1,f32"), source(body, "state", "B,1,f32")
    (part,) = body.wire_node("part", Mul(), [x, w])
    (grown,) = body.wire_node("grown", Add(), [state, part])
    body.set_outputs([grown, state])
    mapping = (OutputMapping(state=True, full=FullOutput(0, 1)), OutputMapping(full=FullOutput(1, 1, -1)))
    op = Scan(body, (ScannedInput(1), FullInput(), StateInput()), mapping, reset_every_turn=True)
    inputs = [source(model, name, fact) for name, fact in (("x", "B,T,f32"), ("w", "B,1,f32"), ("s", "B,1,f32"))]
    model.set_outputs(model.wire_node("loop", op, inputs))
    for batch, length in ((3, 5), (1, 1), (0, 2), (4, 0)):
        check(model, floats(batch, length), floats(batch, 1), floats(batch, 1))


def test_a_body_that_is_left_to_the_host_says_why() -> None:
    body, model = TypedModel(), TypedModel()
    noise = RandomLike(Distribution.NORMAL, 0.0, 1.0, DatumType.F32, None)
    body.set_outputs(body.wire_node("noise", noise, [source(body, "x", "1,3,f32")]))
    op = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),), reset_every_turn=True)
    model.set_outputs(model.wire_node("loop", op, [source(model, "x", "T,3,f32")]))
    plan = CudaPlan(model, device(0), TARGET)
    assert list(plan.hosted().values()) == ["in its body, node 'noise': there is no kernel for this operator yet"]
    assert len(plan.program.steps) == 1


WIRES = {"lstm": (wire_lstm, 4), "gru": (wire_gru, 3), "rnn": (wire_rnn, 1)}


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("kind", list(WIRES))
def test_recurrent_networks(kind: str, direction: Direction, *, lengths: bool) -> None:
    wire, gates = WIRES[kind]
    model, hidden, ways = TypedModel(), 6, len(direction.backward)
    x, start = source(model, "x", "T,B,5,f32"), source(model, "h", f"{ways},B,{hidden},f32")
    w = model.add_const("w", floats(ways, gates * hidden, 5))
    r = model.add_const("r", floats(ways, gates * hidden, hidden))
    bias = model.add_const("bias", floats(ways, 2 * gates * hidden))
    counts = source(model, "lengths", "B,i64") if lengths else None
    given = RecurrentInputs(x, w, r, bias=bias, lengths=counts, initial_h=start)
    model.set_outputs(wire(model, "net", RecurrentOptions(direction, reset_every_turn=True), given))
    for steps, batch in ((4, 3), (1, 1), (3, 0)):
        more = [RNG.integers(0, steps + 1, batch)] if lengths else []
        inputs = [floats(steps, batch, 5), floats(ways, batch, hidden), *more]
        plan = CudaPlan(model, device(0), TARGET)
        same(plan.run(inputs), TypedSimplePlan(model).run(inputs))
        assert not plan.hosted()


def turns(model: TypedModel, given: Sequence[Sequence[np.ndarray]]) -> None:
    """Turn by turn what the interpreter gives; a snapshot is good on either side, and a fresh state begins anew."""
    plan, meaning = CudaPlan(model, device(0), TARGET), TypedSimplePlan(model)
    assert not plan.hosted()
    state, right = plan.spawn(), meaning.spawn()
    for number, inputs in enumerate(given):
        same(state.run(list(inputs)), right.run(list(inputs)))
        if number % 2:
            told, frozen = pickle.loads(pickle.dumps(state.freeze())), right.freeze()
            state, right = plan.spawn(), meaning.spawn()
            state.thaw(frozen)
            right.thaw(told)
    for one in (state, right):
        one.reset()
    same(state.run(list(given[0])), right.run(list(given[0])))


def test_states_that_stay_from_turn_to_turn() -> None:
    turns(sums(reset=False), [(floats(length, 3), floats(3)) for length in (4, 1, 0, 2, 7)])


@pytest.mark.parametrize("skip", [1, 5, 6, 30])
def test_iterations_that_are_skipped_count_over_turns(skip: int) -> None:
    turns(sums(reset=False, skip=skip), [(floats(length, 3), floats(3)) for length in (2, 3, 0, 1, 4)])


@pytest.mark.parametrize("skip", [2, 4])
def test_they_count_though_the_caller_hands_the_state_on(skip: int) -> None:
    turns(sums(reset=False, external=True, skip=skip), [(floats(3, 3), floats(3)) for _ in range(3)])


def test_a_state_of_other_sizes_is_refused() -> None:
    state = CudaPlan(sums(reset=False), device(0), TARGET).spawn()
    state.run([floats(2, 3), floats(3)])
    with pytest.raises(
        RunError, match=r"the loop's state has shape \(3,\) from the turn before, this turn wants \(4,\)"
    ):
        state.run([floats(2, 4), floats(4)])


def test_a_turn_that_a_kernel_refuses_changes_no_state() -> None:
    """The loop stands before and behind a kernel that finds an index out of range."""
    model = sums(reset=False)
    rows = source(model, "rows", "2,i64")
    model.set_outputs([*model.outputs[:2], *model.wire_node("picked", Gather(0), [model.outputs[1], rows])])
    plan, meaning = CudaPlan(model, device(0), TARGET), TypedSimplePlan(model)
    assert [one.kernel.name for one in launches_in(plan.program.steps)][-1] == "keep"
    state, right = plan.spawn(), meaning.spawn()
    for index in (0, 7, 2, 9, 1):
        inputs = [floats(3, 3), floats(3), np.array([index, 0])]
        if index > 2:
            with pytest.raises(RunError, match=r"index \d is outside"):
                state.run(inputs)
        else:
            same(state.run(inputs), right.run(inputs))


def changed_loop(program: CudaProgram, **changes: Any) -> CudaProgram:
    steps = [replace(one, **changes) if isinstance(one, Repeat) else one for one in program.steps]
    return replace(program, steps=tuple(steps))


def without_first(program: CudaProgram) -> CudaProgram:
    """Without what computes the sums of a slice."""
    (loop,) = (one for one in program.steps if isinstance(one, Repeat))
    return changed_loop(program, steps=loop.steps[1:])


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (without_first, r"step \d reads arena\[\d\], to which no step before it writes"),
        (lambda p: changed_loop(p, count=symbol("T") + 2), r"goes from byte -?\d+ to -?\d+ of arena\[\d\], which has"),
        (lambda p: changed_loop(p, index="#other"), r"needs #iteration0, which nothing before it tells"),
        (lambda p: changed_loop(p, count=symbol("Z")), r"needs Z, which nothing before it tells"),
        (lambda p: replace(p, arena=p.arena[:1]), r"mentions arena\[\d\], of which there are 1"),
    ],
)
def test_a_fault_that_is_planted_into_a_loop_is_told(plant: Callable[[CudaProgram], CudaProgram], message: str) -> None:
    planned = compiled(sums(), TARGET)
    check_program(planned.program, planned.model)
    with pytest.raises(AssertionError, match=message):
        check_program(plant(planned.program), planned.model)


def test_what_a_loop_alone_touches_may_share_memory_in_it() -> None:
    """Two tensors of one iteration, one behind the other; what is carried on lies apart from both."""
    body, model = TypedModel(), TypedModel()
    x, state = source(body, "x", "1,64,f32"), source(body, "state", "1,64,f32")
    weights = body.add_const("w", np.full((64, 64), 1 / 64, "f4"))
    for number in range(4):
        mapping = AxesMapping(("bk", "kn"), ("bn",))
        (state,) = body.wire_node(f"product{number}", EinSum(mapping, DatumType.F32), [state, weights])
    (state,) = body.wire_node("sum", Add(), [state, x])
    body.set_outputs([state])
    op = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, last=0),), reset_every_turn=True)
    model.set_outputs(model.wire_node("loop", op, [source(model, "x", "T,64,f32"), source(model, "s", "1,64,f32")]))
    planned = compiled(model, TARGET)
    lives, places = planned.program.lives(), planned.arena.offset_of
    short = [number for number, (first, last) in lives.items() if last - first == 1]
    assert len({places[number] for number in short}) < len(short)
    check(model, floats(3, 64), floats(1, 64))


def test_sizes_as_numbers_are_written_on_the_device() -> None:
    model, length = TypedModel(), symbol("T")
    x = source(model, "x", "T,2,i64")
    sizes = [model.add_const("one", length * 3 - 1), model.add_const("pair", [length, 7])]
    (row,) = model.wire_node("row", AddAxis(0), sizes[1:])
    (total,) = model.wire_node("total", Add(), [x, row])
    model.set_outputs([total, sizes[0]])
    for number in (0, 1, 5):
        check(model, np.arange(2 * number).reshape(number, 2))
