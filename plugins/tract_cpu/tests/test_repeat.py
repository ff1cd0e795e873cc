"""Turns that are like one before are native code alone: the same results and refusals as on the long way."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from bodies import around, picking
from bodies import sums as sums_of_slices
from tract_cpu.execution import FULL, Arena, _pieces
from tract_cpu.native import objects
from tract_cpu.native.repeat import look_closer
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

import tract_core as tract
from tract_core.errors import InputError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Div, Mul
from tract_core.ops.elementwise import Exp, Tanh
from tract_core.ops.gather import Gather
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.runtime.plan import TypedSimplePlan


def plan_of(facts: list[str], wire, isa=None) -> CpuPlan:
    model = TypedModel()
    inputs = [model.add_source(f"x{slot}", parse_typed_fact(one, model.symbols)) for slot, one in enumerate(facts)]
    model.set_outputs(wire(model, inputs))
    return CpuPlan(model, isa or chosen(""))


def sums(facts: list[str]) -> CpuPlan:
    return plan_of(facts, lambda model, inputs: model.wire_node("y", Add(), inputs))


def normal(*shape: int, seed: int = 0, dtype="f4"):
    return (np.random.default_rng(seed).standard_normal(shape) * 9).astype(dtype)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 0, 3), (3, 5), (1, 2, 1, 3, 1)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
def test_inputs_like_those_before_give_what_the_long_way_gives(isa, shape, dtype) -> None:
    names = {"f4": "f32", "f8": "f64", "i8": "i64", "u1": "u8"}

    def wire(model, inputs):
        product = model.wire_node("y", Mul(), inputs)
        return [*product, *model.wire_node("z", Add(), [product[0], inputs[0]])]

    plan = plan_of([",".join([*"ABCDE"[: len(shape)], names[dtype]])] * 2, wire, isa)
    state = plan.spawn()
    assert state.repeat([normal(*shape, dtype=dtype)] * 2) is None
    for seed in range(3):
        a, b = (np.asarray(normal(*shape, seed=seed + 9 * one, dtype=dtype)) for one in range(2))
        wanted = state.run([a, b])
        for inputs in ([a, b], (a, b)):
            found = state.repeat(inputs)
            assert found is not None
            assert [(one.dtype, one.shape, one.tobytes()) for one in found] == [
                (one.dtype, one.shape, one.tobytes()) for one in wanted
            ]
            assert all(one.flags.owndata and one.flags.writeable and one.flags.c_contiguous for one in found)


def test_what_is_not_as_before_is_left_to_the_long_way() -> None:
    plan = sums(["A,B,f32", "A,B,f32"])
    state = plan.spawn()
    a, b = normal(4, 6), normal(4, 6, seed=1)
    state.run([a, b])
    assert state.repeat([a, b]) is not None

    class Other(np.ndarray):
        pass

    unaligned = np.frombuffer(bytes(97), np.float32, 24, 1).reshape(4, 6)
    for odd in (
        *(None, 3, "ab", {"x0": a, "x1": b}, np.stack([a, b]), iter([a, b]), [], [a], [a, b, b], [a, None]),
        *([a, b.tolist()], [a, b.astype("f8")], [a, b.astype("i4")], [a, b.byteswap().view(">f4")]),
        *([a, normal(6, 4)], [a, normal(4, 5)], [normal(5, 6)] * 2, [a, b[0]], [a, b[None]], [a, np.float32(1)]),
        *([a, normal(6, 4).T], [a, normal(8, 6)[::2]], [a, normal(4, 12)[:, ::2]], [a, b[::-1]], [a, unaligned]),
        *([a, np.asfortranarray(b)], [a, b.view(Other)], [a, np.ma.masked_array(b)], [a, tract.Tensor.from_numpy(b)]),
    ):
        assert state.repeat(odd) is None
    assert state.repeat([a, b]) is not None
    assert state.repeat([a, b], None, None) is None


def test_equal_types_are_one_type() -> None:
    """Arrays that come out of a pickle have types of their own, which are equal to the others."""
    plan, x = sums(["3,i64", "3,i64"]), np.arange(3)
    state = plan.spawn()
    state.run([x, x])
    for other in (pickle.loads(pickle.dumps(x)), x.astype("q"), x.astype("<i8")):
        assert state.repeat([other, x])[0].tolist() == [0, 2, 4]


def test_inputs_are_read_where_they_are_and_nothing_is_kept_of_them() -> None:
    plan = sums(["9,f32", "9,f32"])
    state, a, b = plan.spawn(), normal(9), normal(9, seed=1)
    a.setflags(write=False)
    state.run([a, b])
    gc.collect()
    objects_ = [a, b, a.dtype, state.repeat]
    before = [sys.getrefcount(one) for one in objects_]
    for _ in range(50):
        b += 1
        assert state.repeat([a, b])[0].tolist() == (a + b).tolist()
        assert state.repeat([a, a[1:]]) is None
    assert [sys.getrefcount(one) for one in objects_] == before


def test_new_sizes_take_the_long_way_once(monkeypatch) -> None:
    plan = sums(["N,f32", "N,f32"])
    runnable = tract.runtime_for_name("cpu").prepare(tract.Model(plan.model))
    found = []
    real = type(runnable.plan.spawn()).run
    monkeypatch.setattr(
        type(runnable.plan.spawn()),
        "run",
        lambda self, *args, **options: (found.append(1), real(self, *args, **options))[1],
    )
    state = runnable.spawn_state()
    for called in (runnable, state):
        for size, long_ways in ((3, 1), (5, 1), (0, 1), (3, 1)):
            found.clear()
            for _ in range(3):
                (sum_,) = called.run([np.full(size, 2, "f4"), np.ones(size, "f4")])
                assert sum_.to_numpy().tolist() == [3.0] * size
                (sum_,) = called.run({"x1": np.full(size, 2, "f4"), "x0": np.ones(size, "f4")})
                assert sum_.to_numpy().tolist() == [3.0] * size
            assert len(found) == long_ways


def test_arrays_of_the_caller_are_filled_like_on_the_long_way() -> None:
    def wire(model, inputs):
        return [*model.wire_node("y", Add(), inputs), *model.wire_node("z", Mul(), inputs)]

    plan, a, b = plan_of(["N,3,f32", "N,3,f32"], wire), normal(5, 3), normal(5, 3, seed=1)
    state = plan.spawn()
    wanted = [one.tobytes() for one in state.run([a, b])]
    out = [np.zeros((5, 3), "f4") for _ in range(2)]
    before = [sys.getrefcount(one) for one in out]
    for filled in (out, tuple(out)):
        for one in out:
            one[...] = np.nan
        found = state.repeat([a, b], filled)
        assert found is not None
        assert all(one is other for one, other in zip(found, out, strict=True))
        assert [one.tobytes() for one in out] == wanted
    assert [one.tobytes() for one in state.repeat([a, b], None)] == wanted
    del found, filled, one
    assert [sys.getrefcount(one) for one in out] == before
    (nothing,) = state.run([a[:0], b[:0]])[:1]
    assert state.repeat([a[:0], b[:0]], [nothing, nothing.copy()]) is not None


def test_arrays_to_fill_that_do_not_fit_are_left_to_the_long_way() -> None:
    plan, a, b = sums(["N,4,f32", "N,4,f32"]), normal(6, 4), normal(6, 4, seed=1)
    state, fixed = plan.spawn(), np.zeros((6, 4), "f4")
    state.run([a, b])
    fixed.setflags(write=False)
    room = np.zeros(60, "f4")
    room[:24] = a.reshape(-1)
    overlaps = [room[begin : begin + 24].reshape(6, 4) for begin in (0, 1, 23)]
    for odd in (
        *(3, [], [None], [fixed], [np.zeros((6, 4))], [np.zeros((4, 6), "f4")], [np.zeros((6, 4), "f4")] * 2),
        *([np.zeros((4, 6), "f4").T], [np.zeros((6, 4), ">f4")], [np.zeros((6, 8), "f4")[:, ::2]], {"y": fixed}),
        *([one] for one in overlaps),
    ):
        assert state.repeat([overlaps[0], b], odd) is None
    assert np.array_equal(overlaps[0], a), "nothing was done"
    assert not fixed.any()
    assert state.repeat([overlaps[0], b], [room[24:48].reshape(6, 4)]) is not None
    assert np.array_equal(room[24:48].reshape(6, 4), a + b)
    runnable = tract.runtime_for_name("cpu").prepare(tract.Model(plan.model))
    for called in (runnable, runnable.spawn_state()):
        called.run([a, b])
        x = a.copy()
        assert called.run([x, b], out=[x])[0] is x
        assert np.array_equal(x, a + b)
        for odd in ([fixed], [np.zeros((6, 4))], [fixed] * 2):
            messages = []
            for one in (called, tract.runtime_for_name("cpu").prepare(tract.Model(plan.model))):
                with pytest.raises(InputError) as error:
                    one.run([a, b], out=odd)
                messages.append(str(error.value))
            assert messages[0] == messages[1]


def test_refusals_say_the_same_the_second_time() -> None:
    runnable = tract.runtime_for_name("cpu").prepare(tract.Model(sums(["N,2,f32", "N,2,f32"]).model))
    for called in (runnable, runnable.spawn_state()):
        good = [np.ones((3, 2), "f4")] * 2
        for odd in (
            [good[0]],
            [good[0], np.ones((4, 2), "f4")],
            [good[0], np.ones((3, 2))],
            [np.ones((3, 3), "f4")] * 2,
        ):
            messages = []
            for _ in range(2):
                called.run(good)
                with pytest.raises(InputError) as error:
                    called.run(odd)
                messages.append(str(error.value))
            fresh = tract.runtime_for_name("cpu").prepare(tract.Model(sums(["N,2,f32", "N,2,f32"]).model))
            with pytest.raises(InputError) as error:
                fresh.run(odd)
            assert messages == [str(error.value)] * 2


def test_what_a_kernel_refuses_is_told_by_the_long_way() -> None:
    plan = plan_of(["5,f32", "3,i64"], lambda model, inputs: model.wire_node("y", Gather(0), inputs))
    runnable = tract.runtime_for_name("cpu").prepare(tract.Model(plan.model))
    x = normal(5)
    for called in (runnable, runnable.spawn_state()):
        for _ in range(2):
            for _ in range(2):
                (found,) = called.run([x, np.array([4, 0, 1])])
                np.testing.assert_array_equal(found.to_numpy(), x[[4, 0, 1]])
            with pytest.raises(RunError, match="node 'y'"):
                called.run([x, np.array([4, 5, 1])])


def test_a_runnable_may_be_called_from_many_threads_at_once() -> None:
    """Others run Python meanwhile, and call the same function, which is under way."""
    plan = plan_of(["N,f32"], lambda model, inputs: model.wire_node("z", Exp(), model.wire_node("y", Tanh(), inputs)))
    runnable = tract.runtime_for_name("cpu", threads=1).prepare(tract.Model(plan.model))
    size, wrong = 1 << 17, []
    runnable.run([np.zeros(size, "f4")])

    def work(number: int) -> None:
        for turn in range(40):
            given = [np.full(size, (number * 40 + turn) / 300, "f4")]
            (found,) = runnable.run(given)
            given.clear()
            wanted = np.exp(np.tanh((number * 40 + turn) / 300))
            if not np.allclose(found.to_numpy(), wanted, rtol=1e-5):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_a_function_outlives_the_plan_that_made_it() -> None:
    plan, x = sums(["40,f32", "40,f32"]), normal(40)
    state = plan.spawn()
    state.run([x, x])
    repeat = state.repeat
    del plan, state
    gc.collect()
    filler = [np.full(4000, np.nan, "f4") for _ in range(50)]
    assert repeat([x, x])[0].tolist() == (x + x).tolist()
    del filler


def test_where_objects_are_not_as_they_should_be_there_is_no_such_function(monkeypatch) -> None:
    for name, value in (("counts_holders", lambda: False), ("DTYPE", objects.DTYPE - 8), ("HEAD", 32)):
        with monkeypatch.context() as changed:
            changed.setattr(objects, name, value)
            assert not objects.are_known.__wrapped__()
    assert objects.are_known.__wrapped__()
    monkeypatch.setattr("tract_cpu.plan.are_known", lambda: False)
    plan, x = sums(["3,f32", "3,f32"]), normal(3)
    state = plan.spawn()
    for _ in range(3):
        assert state.run([x, x])[0].tolist() == (x + x).tolist()
    assert state.repeat is plan.repeat is look_closer


def test_who_counts_holders_is_told_by_the_kind_of_python(monkeypatch) -> None:
    for name, version, free_threaded, wanted in (
        ("pypy", (3, 11), 0, False),
        ("cpython", (3, 12), 0, True),
        ("cpython", (3, 13), 0, True),
        ("cpython", (3, 13), 1, False),
    ):
        with monkeypatch.context() as changed:
            python = SimpleNamespace(implementation=SimpleNamespace(name=name), version_info=version)
            changed.setattr(objects, "sys", python)
            changed.setattr("sysconfig.get_config_var", {"Py_GIL_DISABLED": free_threaded}.get)
            assert objects.counts_holders.__wrapped__() is wanted


def test_numbers_of_numpy_that_are_no_arrays_are_read_as_such() -> None:
    state = sums(["f32", "f32"]).spawn()
    for values in ((1, 2), (3, 4)):
        a, b = map(np.float32, values)
        assert state.run([a, b])[0] == sum(values)
    assert state.repeat([np.float32(1), np.zeros((), "f4")]) is None


def test_loops_are_part_of_turns_that_are_like_one_before() -> None:
    op = sums_of_slices(0, 1)
    model = around(op, {"x": "T,3,f32", "s": "1,3,f32", "w": "1,1,f32"})
    plan, reference = CpuPlan(model, chosen("")), TypedSimplePlan(model).spawn()
    state, given = plan.spawn(), [normal(5, 3), normal(1, 3), np.full((1, 1), 0.5, "f4")]
    wanted = [reference.run(given) for _ in range(6)]
    for turn in range(2):  # who keeps something gets ready when there is a second turn
        assert state.repeat(given) is None
        assert [one.tolist() for one in state.run(given)] == [one.tolist() for one in wanted[turn]]
    for turn in range(2, 6):
        found = state.repeat(given)
        assert found is not None
        for one, other in zip(found, wanted[turn], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


def test_where_what_is_kept_would_change_twice_turns_are_not_repeated() -> None:
    state = CpuPlan(picking(), chosen("")).spawn()  # places outside are refused, in the middle of the loop
    for _ in range(3):
        state.run([np.zeros(2, "i8"), np.zeros((1, 3), "f4"), normal(4, 3)])
        assert state.repeat is look_closer


def test_loops_that_go_round_for_long_are_not_repeated(monkeypatch) -> None:
    model = around(sums_of_slices(0, 1), {"x": "T,3,f32", "s": "1,3,f32", "w": "1,1,f32"})
    given = [normal(5, 3), normal(1, 3), np.full((1, 1), 0.5, "f4")]
    for full, repeats in ((1 << 30, True), (1 << 10, False)):
        monkeypatch.setattr("tract_cpu.execution.FULL", full)
        state = CpuPlan(model, chosen("")).spawn()
        for _ in range(2):
            state.run(given)
        assert (state.repeat is not look_closer) == repeats


def test_a_function_outlives_the_state_whose_memory_it_uses() -> None:
    model = around(sums_of_slices(0, 1), {"x": "T,400,f32", "s": "1,400,f32", "w": "1,1,f32"})
    plan, given = CpuPlan(model, chosen("")), [normal(2, 400), normal(1, 400), np.full((1, 1), 0.5, "f4")]
    kept, other = plan.spawn(), plan.spawn()
    *_, wanted = kept.run(given), kept.run(given), kept.run(given)
    for _ in range(2):
        other.run(given)
    repeat = other.repeat
    del other
    gc.collect()
    filler = [np.full((1, 400), np.nan, "f4") for _ in range(50)]
    assert [one.tolist() for one in repeat(given)] == [one.tolist() for one in wanted]
    del filler


def of_the_sum(model, inputs):
    """Two steps with a tensor between them."""
    product = model.wire_node("product", Mul(), inputs)
    total = model.wire_node("total", Reduce((0,), Reducer.SUM), product)
    return model.wire_node("y", Div(), [product[0], total[0]])


def laid(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What memory for tensors is made from now on."""
    made: list[object] = []
    lay = Arena.lay
    monkeypatch.setattr(Arena, "lay", lambda arena, *places: made.append(arena) or lay(arena, *places))
    return made


def test_a_closer_look_at_a_turn_of_much_memory_uses_that_of_the_turns_before(monkeypatch) -> None:
    """As where helpers fell asleep between two turns: nothing is laid out anew, and nobody else begins a turn there."""
    monkeypatch.setattr("tract_cpu.plan.MOST_IDLE_BYTES", 0)
    made, plan, given = laid(monkeypatch), sums(["N,f32"] * 2), [normal(9), normal(9, seed=1)]
    for _ in range(3):
        plan.spawn().run(given)
    repeat, state = plan.repeat, plan.spawn()
    np.testing.assert_array_equal(repeat(given)[0], given[0] + given[1])
    np.testing.assert_array_equal(state.run(given)[0], given[0] + given[1])
    assert len(made) == 1
    assert plan.repeat is look_closer
    assert repeat(given) is None
    del state
    assert plan.repeat is repeat
    np.testing.assert_array_equal(repeat(given)[0], given[0] + given[1])
    other = [normal(5), normal(5, seed=1)]
    np.testing.assert_array_equal(plan.spawn().run(other)[0], other[0] + other[1])
    assert len(made) == 2


def test_a_closer_look_at_a_turn_of_little_memory_leaves_that_of_others_alone(monkeypatch) -> None:
    made, plan, given = laid(monkeypatch), sums(["N,f32"] * 2), [normal(9), normal(9, seed=1)]
    for _ in range(2):
        plan.spawn().run(given)
    repeat, state = plan.repeat, plan.spawn()
    state.run(given)
    assert len(made) == 2
    assert plan.repeat is repeat
    np.testing.assert_array_equal(repeat(given)[0], given[0] + given[1])


def test_turns_of_much_memory_in_many_threads_share_none(monkeypatch) -> None:
    """Some on the short way, some on the long one, which takes the memory of the short one if it is free."""
    monkeypatch.setattr("tract_cpu.plan.MOST_IDLE_BYTES", 0)
    plan = plan_of(["N,f32"] * 2, of_the_sum)
    wrong: list[int] = []

    def work(number: int) -> None:
        given = [normal(4099, seed=number), normal(4099, seed=99)]
        wanted = plan.spawn().run(given)[0].tobytes()
        for turn in range(200):
            found = plan.repeat(given) if turn % 3 else None
            found = plan.spawn().run(given) if found is None else found
            if found[0].tobytes() != wanted:
                wrong.append(turn)

    workers = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert not wrong


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 17, 1000])
@pytest.mark.parametrize("looks", [0, 1, 6, 5000])
def test_threads_share_what_is_done_between_two_looks_at_the_fuel(threads, tasks, looks) -> None:
    """However long a task takes; and looks are no farther apart than tasks allow."""
    parts, fuel = min(tasks, threads), looks * FULL / 4
    each, takes = _pieces(np.array([fuel]), np.array([tasks]), np.array([parts]))
    assert each[0] >= parts
    assert each[0] % parts == 0
    assert each[0] <= parts or fuel / tasks * (each[0] - parts) <= FULL / 4 * parts * 2
    assert takes[0] * -(-tasks // each[0]) == pytest.approx(fuel, rel=0.7)
