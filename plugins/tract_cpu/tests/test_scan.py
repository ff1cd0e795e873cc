"""Loops over slices as native code: every way to cut and to join, whatever is in the body, and what is kept."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from bodies import around, body, numbers, picking, plan, same, sums, with_deadline
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.compress import Compress
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.range import Range
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedSimplePlan

LENGTHS = [0, 1, 2, 3, 7, 12]


def by_hand(x: np.ndarray, s: np.ndarray, w: np.ndarray, axis: int, chunk: int) -> list[np.ndarray]:
    """What `bodies.sums` gives, slice by slice."""
    size = abs(chunk)
    count = -(-x.shape[axis] // size)
    lacks = [(0, 0)] * x.ndim
    missing = count * size - x.shape[axis]
    lacks[axis] = (missing, 0) if chunk < 0 else (0, missing)
    padded = np.pad(x, lacks)
    pieces = np.split(padded, count, axis) if count else []
    shape = list(x.shape)
    shape[axis] = size
    given, piece = [], np.zeros(shape, x.dtype)
    for piece in pieces[::-1] if chunk < 0 else pieces:
        given.append(piece + s)
        s = s * w + piece.sum(axis, keepdims=True)
    joined = np.concatenate(given[::-1] if chunk < 0 else given, axis) if given else padded
    return [joined, s, piece]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("chunk", [1, -1, 2, -2, 5, -5])
@pytest.mark.parametrize(("axis", "rank"), [(0, 2), (1, 2), (1, 3), (2, 3)])
def test_slices_are_cut_and_joined_along_any_axis(axis, rank, chunk, length) -> None:
    shape = [2, 3, 4][:rank]
    shape[axis] = length
    ones = [1 if one == axis else size for one, size in enumerate(shape)]
    x, s, w = numbers(*shape), numbers(*ones), np.full([1] * rank, 0.5, "f4")
    wanted = by_hand(x, s, w, axis, chunk)
    for sizes in (shape, [f"A{one}" for one in range(rank)]):
        state = ["1" if one == axis else str(size) for one, size in enumerate(sizes)]
        facts = {"x": ",".join(map(str, sizes)), "s": ",".join(state), "w": ",".join("1" * rank)}
        op = sums(axis, chunk, rank, reset_every_turn=True)
        model = around(op, {name: f"{shape},f32" for name, shape in facts.items()})
        state = plan(model).spawn()
        for _ in range(2):
            same(state.run([x, s, w]), wanted)


def network(hidden: str = "H") -> TypedModel:
    """h = tanh(x W + h R) over the first axis of x [T, B, I]."""
    facts = {"x": "1,B,I,f32", "w": f"I,{hidden},f32", "h": f"1,B,{hidden},f32", "r": f"{hidden},{hidden},f32"}
    inner, (x, w, h, r) = body(facts)
    product = EinSum(AxesMapping.parse("tbi,ij->tbj"), DatumType.F32)
    both = wire_one(inner, "both", Add(), wire_one(inner, "xw", product, x, w), wire_one(inner, "hr", product, h, r))
    inner.set_outputs([wire_one(inner, "new", Tanh(), both)])
    mappings = (ScannedInput(0), FullInput(), StateInput(), FullInput())
    op = Scan(inner, mappings, (OutputMapping(state=True, full=FullOutput(0, 0), last=1),), reset_every_turn=True)
    return around(op, {**facts, "x": "T,B,I,f32"})


def network_inputs(t: int, b: int, i: int, h: int) -> list[np.ndarray]:
    return [numbers(t, b, i), numbers(i, h) / 4, numbers(1, b, h), numbers(h, h) / 4]


@pytest.mark.parametrize("sizes", [(0, 2, 3, 4), (1, 1, 1, 1), (5, 2, 3, 33), (30, 7, 9, 17), (3, 0, 2, 2)])
def test_a_recurrent_network_on_every_instruction_set(isa, sizes) -> None:
    x, w, h, r = inputs = network_inputs(*sizes)
    found = plan(network(), isa=isa.name).spawn().run(inputs)
    states = [h]
    for step in x.astype("f8"):
        states.append(np.tanh(step @ w + states[-1] @ r))
    np.testing.assert_allclose(found[0], np.concatenate([states[0][:0], *states[1:]]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], states[-1], rtol=1e-5, atol=1e-5)


@pytest.fixture(params=[True, False], ids=["shared", "alone"])
def sharing(request, monkeypatch) -> bool:
    """Whether other threads take part in loops, however small they are."""
    if request.param:
        monkeypatch.setattr("tract_cpu.binding.WORK_TO_SHARE", 0)
    return request.param


@pytest.mark.parametrize("sizes", [(0, 60, 60, 60), (1, 60, 60, 60), (40, 60, 60, 60)])
def test_results_are_the_same_to_the_bit_for_any_number_of_threads(sizes, sharing, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    inputs = network_inputs(*sizes)
    alone = plan(network()).spawn().run(inputs)
    for threads in (2, 3):
        state = plan(network(), threads).spawn()
        for _ in range(3):
            for found, wanted in zip(state.run(inputs), alone, strict=True):
                np.testing.assert_array_equal(found.view("u4"), wanted.view("u4"))


@pytest.mark.parametrize("sizes", [(0, 3, 2), (3, 0, 2), (1, 1, 1), (4, 5, 3), (2, 7, 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_loops_in_loops(sizes, threads, sharing, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    outer, (x, s, w) = body({"x": "1,U,N,f32", "s": "1,N,f32", "w": "1,1,f32"})
    rows = wire_one(outer, "rows", RmAxis(0), x)
    shifted, last, _ = outer.wire_node("inner", sums(0, 2, reset_every_turn=True), [rows, s, w])
    outer.set_outputs([wire_one(outer, "joined", AddAxis(0), shifted), last])
    mappings = (ScannedInput(0, -1), StateInput(), FullInput())
    outputs = (OutputMapping(full=FullOutput(0, 0, -1)), OutputMapping(state=True, last=1))
    op = Scan(outer, mappings, outputs, reset_every_turn=True)
    model = around(op, {"x": "T,U,N,f32", "s": "1,N,f32", "w": "1,1,f32"})
    t, u, n = sizes
    x, s, w = numbers(t, u, n), numbers(1, n), np.full((1, 1), 0.5, "f4")
    state, pieces = plan(model, threads).spawn(), []
    last = s
    for rows in x[::-1]:
        joined, last, _ = by_hand(rows, last, w, 0, 2)
        pieces.append(joined)
    wanted = np.stack(pieces[::-1]) if pieces else np.zeros((0, -(-u // 2) * 2, n), "f4")
    for _ in range(2):
        same(state.run([x, s, w]), [wanted, last])


def test_states_that_change_places_and_outputs_that_are_inputs() -> None:
    inner, (x, a, b) = body({"x": "1,N,f32", "a": "1,N,f32", "b": "1,N,f32"})
    inner.set_outputs([b, a, x, wire_one(inner, "less", Sub(), a, x)])
    outputs = (
        OutputMapping(state=True, last=0),
        OutputMapping(state=True, last=1, full=FullOutput(2, 0)),
        OutputMapping(full=FullOutput(3, 0, -1)),
        OutputMapping(full=FullOutput(4, 0)),
    )
    op = Scan(inner, (ScannedInput(0), StateInput(), StateInput()), outputs, reset_every_turn=True)
    model = around(op, {"x": "T,N,f32", "a": "1,N,f32", "b": "1,N,f32"})
    for count in LENGTHS:
        inputs = [numbers(count, 3), np.ones((1, 3), "f4"), np.zeros((1, 3), "f4")]
        same(plan(model).spawn().run(inputs), TypedSimplePlan(model).run(inputs))


# ---- what is kept between turns


def keeping() -> TypedModel:
    return around(sums(0), {"x": "T,N,f32", "s": "1,N,f32", "w": "1,1,f32"})


def turns(*lengths: int) -> list[list[np.ndarray]]:
    whole = numbers(sum(lengths), 3)
    pieces = np.split(whole, np.cumsum(lengths)[:-1])
    return [[piece, np.ones((1, 3), "f4"), np.full((1, 1), 0.5, "f4")] for piece in pieces]


def test_the_state_goes_from_turn_to_turn() -> None:
    one, reference = plan(keeping()).spawn(), TypedSimplePlan(keeping()).spawn()
    for inputs in turns(3, 1, 0, 4):
        same(one.run(inputs), reference.run(inputs))
    one.reset()
    reference.reset()
    (inputs,) = turns(2)
    same(one.run(inputs), reference.run(inputs))


def test_states_of_one_plan_keep_what_is_theirs() -> None:
    shared = plan(keeping())
    first, second = shared.spawn(), shared.spawn()
    a, b = TypedSimplePlan(keeping()).spawn(), TypedSimplePlan(keeping()).spawn()
    for number, inputs in enumerate(turns(3, 1, 5, 4, 2)):
        state, reference = (first, a) if number % 2 else (second, b)
        same(state.run(inputs), reference.run(inputs))


def test_a_frozen_state_goes_on_elsewhere() -> None:
    before, after, _ = turns(3, 4, 1)
    state, reference = plan(keeping()).spawn(), TypedSimplePlan(keeping()).spawn()
    state.run(before)
    reference.run(before)
    frozen = pickle.loads(pickle.dumps(state.freeze()))
    wanted = reference.run(after)
    same(state.run(after), wanted)
    other = plan(keeping()).spawn()
    for _ in range(2):  # a snapshot stays as it is
        other.thaw(frozen)
        same(other.run(after), wanted)
    other.thaw({})
    same(other.run(before), TypedSimplePlan(keeping()).run(before))


def test_a_state_of_other_sizes_is_refused_as_by_the_reference() -> None:
    (inputs,) = turns(3)
    wider = [np.ones((2, 5), "f4"), np.ones((1, 5), "f4"), inputs[2]]
    said = []
    for state in (plan(keeping()).spawn(), TypedSimplePlan(keeping()).spawn()):
        state.run(inputs)
        with pytest.raises(RunError, match=r"state has shape \(1, 3\) from the turn before, this turn wants \(1, 5\)"):
            state.run(wider)
        said.append(state.run(inputs))
    same(*said)


@pytest.mark.parametrize("flags", [{}, {"reset_every_turn": True}, {"external_state": True}], ids=str)
@pytest.mark.parametrize("skip", [1, 4, 1 << 70])
@pytest.mark.parametrize("chunk", [1, -2])
def test_iterations_are_skipped_until_there_were_enough_in_all_turns(skip, flags, chunk) -> None:
    """A state that is frozen counts on elsewhere."""
    model = around(sums(0, chunk, skip=skip, **flags), {"x": "T,N,f32", "s": "1,N,f32", "w": "1,1,f32"})
    native, reference = plan(model), TypedSimplePlan(model).spawn()
    state = native.spawn()
    for inputs in turns(2, 1, 0, 5, 3):
        same(state.run(inputs), reference.run(inputs))
        frozen, state = pickle.loads(pickle.dumps(state.freeze())), native.spawn()
        state.thaw(frozen)


def test_a_loop_without_a_state_skips_over_turns() -> None:
    inner, (x,) = body({"x": "1,N,f32"})
    inner.set_outputs([wire_one(inner, "tanh", Tanh(), x)])
    op = Scan(inner, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0), last=1),), skip=3)
    model = around(op, {"x": "T,N,f32"})
    state, reference = plan(model, 2).spawn(), TypedSimplePlan(model).spawn()
    for piece in np.split(numbers(9, 3), [2, 3, 6]):
        for found, wanted in zip(state.run([piece]), reference.run([piece]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_what_a_body_refuses_does_no_harm_where_it_is_skipped() -> None:
    model = picking(skip=2)
    state, reference = plan(model).spawn(), TypedSimplePlan(model).spawn()
    s, table = np.ones((1, 3), "f4"), numbers(4, 3)
    for places in ([9], [-9, 1], [2, 1]):
        inputs = [np.array(places, "i8"), s, table]
        same(state.run(inputs), reference.run(inputs))


# ---- refusals, observers, limits


@pytest.mark.parametrize("places", [[5, 1], [1, 2, 9, 0], [0, 1, 2, -5]])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_body_refuses_is_refused_as_by_the_reference(places, threads, sharing, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    model = picking()
    state, reference = plan(model, threads).spawn(), TypedSimplePlan(model).spawn()
    s, table = np.ones((1, 3), "f4"), numbers(4, 3)
    said = []
    for one in (state, reference):
        with pytest.raises(RunError) as caught:
            one.run([np.array(places), s, table])
        said.append(str(caught.value))
    assert said[0] == said[1]
    for good in ([1, 2, 3], [0], []):
        same(state.run([np.array(good, "i8"), s, table]), reference.run([np.array(good, "i8"), s, table]))


def test_observers_see_what_a_loop_gives() -> None:
    model, seen = keeping(), {}
    (inputs,) = turns(5)

    def look(part, outputs):
        seen.update(outputs)

    found = plan(model).spawn_observed(look).run(inputs)
    same([seen[outlet] for outlet in model.outputs], found)
    same(found, TypedSimplePlan(model).run(inputs))


def test_observers_exchange_what_a_loop_gives() -> None:
    model = keeping()
    (inputs,) = turns(5)
    found = (
        plan(model).spawn_observed(lambda _, outputs: {key: np.zeros_like(a) for key, a in outputs.items()}).run(inputs)
    )
    same(found, [np.zeros_like(array) for array in found])


def test_every_iteration_of_a_body_is_timed() -> None:
    (inputs,) = turns(5)
    one = plan(keeping())
    timings = one.timed_run(inputs)
    inner = [timing for timing in timings if timing.part.body]
    (loop,) = [timing for timing in timings if not timing.part.body]
    assert {len(timing.part.body) for timing in inner} == {1}
    groups = {one.part for one in one.explain().placements if one.part.body}
    assert sorted(map(str, (timing.part for timing in inner))) == sorted(map(str, [*groups] * 5))
    assert loop.seconds >= sum(timing.seconds for timing in inner)


def test_who_only_measures_time_is_shown_no_tensor() -> None:
    (inputs,) = turns(5)
    one, seen = plan(keeping()), list[tuple[Part, int]]()

    def note(part: Part, tensors: Mapping[OutletId, Array]) -> dict[OutletId, Array]:
        seen.append((part, len(tensors)))
        return {}

    one.spawn_with(one.bodies).run(inputs, observe=note, only_times=True)
    assert {part for part, _ in seen} >= {timing.part for timing in one.timed_run(inputs)}
    assert {count for _, count in seen} == {0}


def rounds() -> TypedModel:
    """A loop of sums in a loop of sums: as many iterations as the product of two lengths."""
    one = sums(0, reset_every_turn=True)
    outer, (x, s, y, w) = body({"x": "1,1,f32", "s": "1,1,f32", "y": "U,1,f32", "w": "1,1,f32"})
    _, last, _ = outer.wire_node("inner", one, [y, s, w])
    outer.set_outputs([wire_one(outer, "sum", Add(), last, x)])
    mappings = (ScannedInput(0), StateInput(), FullInput(), FullInput())
    op = Scan(outer, mappings, (OutputMapping(state=True, last=0),), reset_every_turn=True)
    return around(op, {"x": "T,1,f32", "s": "1,1,f32", "y": "U,1,f32", "w": "1,1,f32"})


def rounds_inputs(count: int) -> list[np.ndarray]:
    return [np.ones((count, 1), "f4"), np.zeros((1, 1), "f4"), np.zeros((count, 1), "f4"), np.ones((1, 1), "f4")]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_loop_ends_when_its_time_is_up(threads, sharing, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    now = [0.0]
    monkeypatch.setattr("tract_core.limits.monotonic", lambda: now[0])

    def late() -> None:
        now[0] += 1
        check_run_time()

    monkeypatch.setattr("tract_cpu.plan.check_run_time", late)  # time passes in the middle of a loop
    state = plan(with_deadline(rounds(), 0.5), threads).spawn()
    with pytest.raises(RunError, match="longer"):
        state.run(rounds_inputs(3000))
    same(state.run(rounds_inputs(4)), [np.full((1, 1), 4, "f4")])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_that_stops_for_the_clock_goes_on_where_it_was(threads, sharing, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    looks: list[None] = []
    monkeypatch.setattr("tract_cpu.plan.check_run_time", lambda: looks.append(None))
    state = plan(rounds(), threads).spawn()
    same(state.run(rounds_inputs(1100)), [np.full((1, 1), 1100, "f4")])
    assert looks


def test_who_interrupts_a_loop_can_run_again(monkeypatch) -> None:
    state = plan(rounds()).spawn()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr("tract_cpu.plan.check_run_time", interrupt)
        with pytest.raises(KeyboardInterrupt):
            state.run(rounds_inputs(1100))
    same(state.run(rounds_inputs(1100)), [np.full((1, 1), 1100, "f4")])


def test_a_body_with_a_node_without_native_code_is_left_to_the_host_which_says_why() -> None:
    inner, (x, s) = body({"x": "1,N,f32", "s": "1,N,f32"})
    chosen_rows = inner.add_const("chosen", np.ones(1, np.bool_))
    (sum_,) = inner.wire_node("sum", Add(), [x, s])
    inner.set_outputs(inner.wire_node("some", Compress(0, 1), [sum_, chosen_rows]))
    op = Scan(inner, (ScannedInput(0), StateInput()), (OutputMapping(state=True, last=0),))
    model = around(op, {"x": "T,N,f32", "s": "1,N,f32"})
    explanation = CpuPlan(model, chosen("")).explain()
    (loop,) = [one for one in explanation.placements if not one.part.body]
    assert loop.how == "state"
    assert "in its body, node 'some'" in loop.why
    assert [one.names for one in explanation.placements if one.part.body] == [("loop/sum",), ("loop/some",)]


def test_memory_is_used_again_inside_of_a_loop_but_not_across() -> None:
    """What one iteration leaves for the next lies where no temporary of the body does."""
    inner, (x, a, b) = body({"x": "1,8,f32", "a": "1,8,f32", "b": "1,8,f32"})
    products: Sequence = [x]
    for number in range(6):
        w = inner.add_const(f"w{number}", numbers(8, 8))
        products = inner.wire_node(
            f"p{number}", EinSum(AxesMapping.parse("ab,bc->ac"), DatumType.F32), [products[0], w]
        )
    new = wire_one(inner, "a.new", Tanh(), wire_one(inner, "a.sum", Add(), a, products[0]))
    inner.set_outputs([new, wire_one(inner, "b.new", Mul(), b, new)])
    outputs = (OutputMapping(state=True, full=FullOutput(0, 0)), OutputMapping(state=True, last=1))
    op = Scan(inner, (ScannedInput(0), StateInput(), StateInput()), outputs, reset_every_turn=True)
    model = around(op, {"x": "T,8,f32", "a": "1,8,f32", "b": "1,8,f32"})
    inputs = [numbers(9, 8), numbers(1, 8), numbers(1, 8)]
    found, wanted = plan(model).spawn().run(inputs), TypedSimplePlan(model).run(inputs)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_a_turn_that_the_host_does_keeps_its_state_for_the_next_one() -> None:
    """Numbers that are as large as these are left to it, in the middle of the loop."""
    inner, (start, s) = body({"start": "1,i64", "s": "3,i64"})
    first = wire_one(inner, "first", RmAxis(0), start)
    three, one = (inner.add_const(f"c{number}", np.array(number)) for number in (3, 1))
    numbers_ = wire_one(inner, "range", Range(3), first, wire_one(inner, "end", Add(), first, three), one)
    inner.set_outputs([wire_one(inner, "new", Add(), numbers_, s)])
    mapping = OutputMapping(state=True, full=FullOutput(0, 0, 3), last=1)
    model = around(Scan(inner, (ScannedInput(0), StateInput()), (mapping,)), {"starts": "T,i64", "s": "3,i64"})
    native, reference = plan(model).spawn(), TypedSimplePlan(model).spawn()
    for starts in ([1, 2], [3, 3], [1 << 61, 4], [5, 6], [7, 1 << 61], [8, 9], [0, 1]):
        given = [np.array(starts), np.zeros(3, "i8")]
        for found, wanted in zip(native.run(given), reference.run(given), strict=True):
            np.testing.assert_array_equal(found, wanted)
