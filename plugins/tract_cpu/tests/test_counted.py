"""Tensors whose sizes are how many elements are not zero: what native code finds is what NumPy does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tract_cpu.kernels.counted.non_zero import CHUNK
from tract_cpu.plan import MOST_LATER, CpuPlan
from tract_cpu.staged_state import StagedState
from tract_llvm.isa import Isa, of_this_machine

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import RunError, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.compress import Compress
from tract_core.ops.elementwise import Floor, Neg
from tract_core.ops.gather import Gather
from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.ops.non_zero import NonZero
from tract_core.runtime.reference import ReferenceRuntime

FLOATS = ("f16", "bf16", "f32", "f64")
TYPES = (*FLOATS, "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
NAMED = {
    kind.short: kind
    for kind in (
        *(DatumType.F16, DatumType.BF16, DatumType.F32, DatumType.F64, DatumType.BOOL),
        *(DatumType.I8, DatumType.I16, DatumType.I32, DatumType.I64),
        *(DatumType.U8, DatumType.U16, DatumType.U32, DatumType.U64),
    )
}
SIZES = (0, 1, 2, 7, 31, 64, 65, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17)


def model_of(op: TypedOp, *facts: TypedFact) -> TypedModel:
    model = TypedModel()
    inputs = [model.add_source(f"x{number}", fact) for number, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", op, inputs))
    return model


def plan_of(model: TypedModel, isa: Isa | None = None, threads: int = 1) -> CpuPlan:
    plan = CpuPlan(model, isa or of_this_machine()[-1], threads)
    assert isinstance(plan.spawn(), StagedState)
    return plan


def axes(kind: str, rank: int) -> TypedFact:
    return TypedFact.of(NAMED[kind], tuple(symbol(f"N{axis}") for axis in range(rank)))


def sparse(shape: Sequence[int], kind: str, seed: int = 0, share: float = 0.3) -> np.ndarray[Any, Any]:
    """Zeros of both signs, the smallest numbers, infinities and what is no number, between others."""
    rng, dtype = np.random.default_rng(seed), NAMED[kind].storage.numpy
    values = np.array([1, 2, 100, 3], np.float64)
    if kind in FLOATS:
        values = np.concatenate([values, [np.nan, np.inf, -np.inf, -1, -0.0]])
    found = np.zeros(shape, dtype)
    places = rng.random(shape) < share
    found[places] = rng.choice(values, int(places.sum())).astype(dtype)
    if kind in FLOATS and found.size:
        found.reshape(-1)[0] = -0.0
        tiny = found.reshape(-1).view(f"u{found.itemsize}")
        tiny[-1] = 1  # the smallest number that there is
    if kind not in FLOATS and kind != "bool" and found.size:
        found.reshape(-1).view(f"u{found.itemsize}")[-1] = 1 << (8 * found.itemsize - 1)
    return found


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_places_of_lists(kind: str, size: int, isa: Isa) -> None:
    x = sparse((size,), kind, size)
    (found,) = plan_of(model_of(NonZero(symbol("n")), axes(kind, 1)), isa).spawn().run([x])
    np.testing.assert_array_equal(found, np.argwhere(x.astype(np.float64) != 0).T)
    assert found.dtype == np.int64


@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (4, 0), (5, 7), (1, 1, 9), (3, 1, 40, 300), (2, 3, 2, 2, 3)])
@pytest.mark.parametrize("kind", ["f32", "bool", "i64"])
def test_places_of_tensors_of_any_rank(shape: Sequence[int], kind: str) -> None:
    plan = plan_of(model_of(NonZero(symbol("n")), axes(kind, len(shape))))
    for share in (0.0, 0.2, 1.0):
        x = sparse(shape, kind, 1, share)
        (found,) = plan.spawn().run([x])
        np.testing.assert_array_equal(found, np.argwhere(x).T)


@pytest.mark.parametrize("threads", [1, 2])
def test_turns_of_other_contents_and_sizes(threads: int) -> None:
    model = model_of(NonZero(symbol("n")), axes("f32", 2))
    plan, wanted = plan_of(model, threads=threads), ReferenceRuntime().prepare(model)
    state, seed = plan.spawn(), 0
    for shape in [(3, 4), (3, 4), (900, 700), (3, 4), (900, 700), (0, 4), (3, 4)]:
        for share in (0.1, 0.9, 0.1):
            seed += 1
            x = sparse(shape, "f32", seed, share)
            (right,) = wanted.spawn().run([x])
            for one in (state, plan.spawn()):
                np.testing.assert_array_equal(one.run([x])[0], right)


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 2), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_what_a_mask_selects(mask: list[bool], axis: int, more: int) -> None:
    shape = [2, 3, 4]
    shape[axis] = len(mask) + more
    x, condition = np.arange(np.prod(shape), dtype="f4").reshape(shape), np.array(mask, bool)
    (found,) = COMPRESSED[axis].spawn().run([x, condition])
    np.testing.assert_array_equal(found, np.compress(condition, x, axis))


COMPRESSED = [
    plan_of(model_of(Compress(axis, symbol("n")), axes("f32", 3), TypedFact.of(DatumType.BOOL, (symbol("M"),))))
    for axis in range(3)
]


@pytest.mark.parametrize("kind", ["f16", "i8", "u64", "bool", "complex_f32"])
def test_what_a_mask_selects_is_of_any_type(kind: str) -> None:
    one = DatumType.COMPLEX_F32 if kind == "complex_f32" else NAMED[kind]
    fact = TypedFact.of(one, (symbol("A"), symbol("B")))
    plan = plan_of(model_of(Compress(1, symbol("n")), fact, TypedFact.of(DatumType.BOOL, (symbol("M"),))))
    x = np.arange(35).reshape(5, 7).astype(one.storage.numpy)
    for mask in ([], [True], [False] * 7, [True, False, True, True, False, False, True]):
        (found,) = plan.spawn().run([x, np.array(mask, bool)])
        np.testing.assert_array_equal(found, np.compress(np.array(mask, bool), x, 1))


def refusal(run: Any, *given: Any) -> str:
    with pytest.raises(TractError) as raised:
        run.spawn().run(list(given))
    return str(raised.value)


def test_a_mask_that_is_too_long_is_refused_as_by_the_reference() -> None:
    mask = TypedFact.of(DatumType.BOOL, (symbol("M"),))
    model = model_of(Compress(0, symbol("n")), axes("f32", 1), mask)
    arrays = np.zeros(3, "f4"), np.ones(4, bool)
    plan, reference = plan_of(model), ReferenceRuntime().prepare(model)
    assert refusal(plan, *arrays) == refusal(reference, *arrays)
    np.testing.assert_array_equal(plan.spawn().run([arrays[0], np.ones(3, bool)])[0], arrays[0])


def test_another_number_than_was_announced_is_refused_as_by_the_reference() -> None:
    for count in (2, symbol("N0")):
        model = model_of(NonZero(count), axes("f32", 1))
        plan, reference = CpuPlan(model, of_this_machine()[-1]), ReferenceRuntime().prepare(model)
        x = np.array([1, 0, 3, 4], "f4")
        assert refusal(plan, x) == refusal(reference, x)
        right = np.ones(2, "f4")
        np.testing.assert_array_equal(plan.spawn().run([right])[0], [[0, 1]])


def test_too_many_places_are_refused() -> None:
    model = model_of(NonZero(symbol("n")), axes("bool", 1))
    model.limits = replace(model.limits, max_tensor_bytes=1 << 16)
    x = np.ones(60000, bool)
    plan = plan_of(model)
    for _ in range(2):
        with pytest.raises(TractError, match="65536"):
            plan.spawn().run([x])
    x[5:] = False
    assert plan.spawn().run([x])[0].shape == (1, 5)


def test_what_is_kept_from_turn_to_turn_stays_with_its_state() -> None:
    model, delay = TypedModel(), pytest.importorskip("tract_pulse.ops.delay").Delay(0, 2)
    x, mask = (model.add_source(fact, parse_typed_fact(fact, model.symbols)) for fact in ("4,f32", "4,bool"))
    (y,) = model.wire_node("y", delay, [x])
    (chosen,) = model.wire_node("chosen", Compress(0, symbol("n")), [y, mask])
    model.set_outputs([y, *model.wire_node("doubled", Add(), [chosen, chosen])])
    plan, reference = plan_of(model), ReferenceRuntime().prepare(model)
    assert plan.ready.kept
    states, rng = (plan.spawn(), reference.spawn()), np.random.default_rng(0)

    def same() -> None:
        arrays = [rng.random(4).astype("f4"), rng.random(4) < 0.5]
        for found, right in zip(*(one.run(arrays) for one in states), strict=True):
            np.testing.assert_array_equal(found, right)

    for _ in range(5):
        same()
    frozen = [one.freeze() for one in states]
    same()
    for one, content in zip(states, frozen, strict=True):
        one.thaw(content)
    same()
    for one in states:
        one.reset()
    same()
    plan.spawn().run([np.ones(4, "f4"), np.ones(4, bool)])
    same()


def outcome(state: Any, arrays: Sequence[np.ndarray[Any, Any]]) -> str | list[bytes]:
    """The outputs, or the error."""
    try:
        return [one.tobytes() for one in state.run(arrays)]
    except RunError as error:
        return str(error)


def test_what_a_kernel_refuses_behind_a_count_is_left_to_the_host() -> None:
    model = TypedModel()
    names = {"x": "N,f32", "places": "P,i64", "mask": "P,bool"}
    x, places, mask = (model.add_source(name, parse_typed_fact(text, model.symbols)) for name, text in names.items())
    (chosen,) = model.wire_node("chosen", Compress(0, symbol("n")), [places, mask])
    (taken,) = model.wire_node("taken", Gather(0), [x, chosen])
    model.set_outputs([chosen, *model.wire_node("more", Add(), [taken, taken])])
    plan, reference = plan_of(model), ReferenceRuntime().prepare(model)
    data, state = np.arange(5, dtype="f4"), plan.spawn()
    turns = [([1, 9, 4], [1, 0, 1]), ([1, 9, 4], [1, 1, 1]), ([2, -1, 0], [0, 1, 1]), ([1, 9, 4], [1, 0, 1])]
    for numbers, flags in turns:
        arrays = [data, np.array(numbers), np.array(flags, bool)]
        right = outcome(reference.spawn(), arrays)
        assert outcome(state, arrays) == outcome(plan.spawn(), arrays) == right
        assert isinstance(right, str) == (all(flags) and 9 in numbers)


def test_many_sizes_take_little_memory() -> None:
    plan = plan_of(model_of(NonZero(symbol("n")), axes("f32", 1)))
    state, x = plan.spawn(), np.zeros(400, "f4")
    for count in range(401):
        x[:count] = 1
        assert state.run([x])[0].shape == (1, count)
    first = state._execution
    assert first is not None
    assert first.later_count == len(first.later) <= MOST_LATER
    large = np.ones(1 << 22, "f4")
    state.run([large])
    first = state._execution
    assert first is not None
    assert first.later_bytes > 1 << 24
    large[0] = 0
    state.run([large])
    assert first.later_count == len(first.later) == 1


def test_a_body_that_counts_runs_with_the_sizes_around_it() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,f32", model.symbols))
    flag = model.add_source("flag", parse_typed_fact("bool", model.symbols))

    def branch(op: TypedOp) -> Branch:
        inner = TypedModel()
        given = inner.add_source("given", parse_typed_fact("N,f32", inner.symbols))
        inner.set_outputs(inner.wire_node("found", NonZero(symbol("n")), inner.wire_node("z", op, [given])))
        return Branch(inner, (1,))

    model.set_outputs(model.wire_node("y", IfThenElse(branch(Neg()), branch(Floor()), ((1, symbol("K")),)), [flag, x]))
    plan, reference = CpuPlan(model, of_this_machine()[-1]), ReferenceRuntime().prepare(model)
    state = plan.spawn()
    for values in ([0.5, 0, 1.5], [0, 0, 0.5], [0.5, 0, 1.5], [3]):
        for chosen in (True, False):
            arrays = [np.array(values, "f4"), np.array(chosen)]
            for one in (state, plan.spawn()):
                np.testing.assert_array_equal(one.run(arrays)[0], reference.spawn().run(arrays)[0])
