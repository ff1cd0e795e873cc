"""Memory of outputs is used again, and never while somebody can still see it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tract_cpu.outputs
from tract_cpu.outputs import LARGE, Output
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.dims import symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.activation import Tanh
from tract_core.ops.non_zero import NonZero

COUNT = LARGE // 4
HELD: dict[str, Callable[[np.ndarray], Any]] = {
    "itself": lambda array: array,
    "a view": lambda array: array[1, ::2],
    "a view on a view": lambda array: array.reshape(-1)[3:].view(np.uint32)[::-1],
    "a memoryview": memoryview,
    "its iterator": lambda array: iter(array.flat),
    "an array made of its buffer": lambda array: np.frombuffer(memoryview(array).cast("B"), np.float32),
    "DLPack": np.from_dlpack,
}


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def plan_of(*, hosted: bool = False, threads: int = 1) -> CpuPlan:
    """The hyperbolic tangents of ``[2,S]``, and where these are not 0 when the host has to do something too."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,S,f32", model.symbols))
    outputs = model.wire_node("y", Tanh(), [x])
    if hosted:
        outputs += model.wire_node("z", NonZero(symbol("n")), outputs)
    model.set_outputs(outputs)
    return CpuPlan(model, of_this_machine()[-1], threads)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
def test_memory_is_used_again_once_it_is_free(dtype) -> None:
    output = Output((2, LARGE), np.dtype(dtype))
    assert output.is_large
    array = output.array()
    assert array.shape == (2, LARGE)
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert address(array) % 64 == 0
    first = address(array)
    second = address(other := output.array())
    assert second != first
    del array
    assert address(output.array()) == first
    del other
    assert {address(one) for one in [output.array(), output.array()]} == {first, second}


@pytest.mark.parametrize("held", HELD)
def test_memory_that_is_held_stays_as_it_is(held) -> None:
    output = Output((2, COUNT), np.dtype(np.float32))
    array = output.array()
    first, kept = address(array), HELD[held](array)
    del array
    for _ in range(4):
        assert address(output.array()) != first
    assert kept is not None
    del kept
    fresh = Output((2, COUNT), np.dtype(np.float32))
    array = fresh.array()
    first, kept = address(array), HELD[held](array)
    del array, kept
    assert address(fresh.array()) == first, "it is free once nobody holds it"


@pytest.mark.parametrize("shape", [(), (0,), (5, 0, LARGE), (LARGE // 4 - 1,)])
def test_small_outputs_have_memory_of_their_own(shape) -> None:
    output = Output(shape, np.dtype(np.float32))
    assert not output.is_large
    assert output.array().shape == shape
    assert output.array().base is None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("hosted", [False, True])
def test_results_of_many_turns_are_all_there(hosted, threads) -> None:
    plan = plan_of(hosted=hosted, threads=threads)
    given = np.random.default_rng(0).standard_normal((9, 2, COUNT)).astype(np.float32)
    state = plan.spawn()
    found = [state.run([one])[0] for one in given]
    for one, result in zip(given, found, strict=True):
        np.testing.assert_allclose(result, np.tanh(one.astype(np.float64)), rtol=1e-6, atol=1e-7)
    first = found.pop(0).copy()
    state.run([given[3]])
    np.testing.assert_array_equal(state.run([given[0]])[0], first)


def test_a_result_may_be_the_next_input() -> None:
    plan = plan_of()
    x = np.full((2, COUNT), 0.5, np.float32)
    state, wanted = plan.spawn(), x
    for _ in range(5):
        x, wanted = state.run([x])[0], np.tanh(wanted.astype(np.float64))
    np.testing.assert_allclose(x, wanted, rtol=1e-5)


def test_states_of_a_plan_do_not_share_what_they_gave() -> None:
    plan, results = plan_of(), dict[int, list[np.ndarray]]()

    def work(number: int) -> None:
        x = np.full((2, COUNT), number / 8, np.float32)
        state = plan.spawn()
        results[number] = [state.run([x])[0] for _ in range(6)][::2]

    workers = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    for number, arrays in results.items():
        for array in arrays:
            np.testing.assert_allclose(array, np.tanh(number / 8), rtol=1e-6, atol=1e-7)


def test_a_result_outlives_its_state_and_its_plan() -> None:
    x = np.full((2, COUNT), 0.5, np.float32)
    result = plan_of().spawn().run([x])[0]
    np.testing.assert_allclose(result, np.tanh(0.5), rtol=1e-6)


def test_a_python_that_does_not_count_holders_gets_fresh_arrays(monkeypatch) -> None:
    monkeypatch.setattr(tract_cpu.outputs, "counts_holders", lambda: False)
    output = Output((2, COUNT), np.dtype(np.float32))
    assert output.array().base is None
