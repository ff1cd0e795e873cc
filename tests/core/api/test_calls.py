"""Ways to name inputs and outputs, and to call what runs: by number, by name, as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core import Model, Runnable, Tensor, runtime_for_name
from tract_core.errors import InputError

Maker = Callable[[], Model]

A = np.array([[1, 2]], np.float32)
B = np.array([[10, 20]], np.float32)


@pytest.mark.parametrize(("name", "number"), [("a", 0), ("b", 1)])
def test_inputs_go_by_name_too(two_inputs: Maker, name: str, number: int) -> None:
    for held in (two_inputs(), two_inputs().into_runnable(), two_inputs().into_runnable().spawn_state()):
        assert held.input_name(name) == held.input_name(number) == name
        assert held.input_fact(name) == held.input_fact(number)


@pytest.mark.parametrize(("name", "number"), [("total", 0), ("squashed", 1)])
def test_outputs_go_by_name_too(two_inputs: Maker, name: str, number: int) -> None:
    model = two_inputs()
    assert model.output_name(name) == model.output_name(number) == name
    assert model.output_fact(name) == model.output_fact(number)


def test_a_name_that_is_nearly_right(two_inputs: Maker) -> None:
    with pytest.raises(InputError, match="there is no output 'totel'") as caught:
        two_inputs().output_fact("totel")
    assert caught.value.hint == "did you mean 'total'?"


def test_a_runnable_is_a_function(two_inputs: Maker) -> None:
    runnable = two_inputs().into_runnable()
    wanted = runnable.run([A, B])
    assert np.asarray(wanted[0]).tolist() == [[11, 22]]
    for found in (runnable(A, B), runnable(A, b=B), runnable(b=B, a=A), runnable.spawn_state()(A, b=B)):
        assert found == wanted


def test_calls_that_do_not_fit(two_inputs: Maker) -> None:
    runnable = two_inputs().into_runnable()
    calls: dict[str, Callable[[], Any]] = {
        "input 'a' is given twice: by name, and as number 0 of the others": lambda: runnable(A, a=A, b=B),
        "no input is named c; missing: b": lambda: runnable(A, c=B),
        "missing: a": lambda: runnable(b=B),
        "1 inputs were given, the model takes 2": lambda: runnable(A),
        "3 inputs were given, the model takes 2": lambda: runnable(A, B, A),
        "4 inputs were given, the model takes 2": lambda: runnable(A, B, A, a=A),
    }
    for problem, call in calls.items():
        with pytest.raises(InputError, match=problem):
            call()


class Echo:
    """A plan that gives its first input back, as it is."""

    def spawn(self) -> Echo:
        return self

    def run(self, inputs: Any, out: Any = None) -> list[Any]:
        self.seen = inputs[0]
        return [inputs[0], inputs[0]]


class LendingEcho(Echo):
    """Says of its second output that it may be an input."""

    lent = (1,)


def echoing(two_inputs: Maker, plan: Any) -> Runnable:
    return Runnable(two_inputs().into_typed(), plan, runtime_for_name("reference"))


def test_outputs_are_copied_where_the_plan_says_that_it_lends(two_inputs: Maker) -> None:
    """And nowhere else, as looking for memory that is shared takes as long as all the rest of a call."""
    for plan, copied in ((Echo(), [False, False]), (LendingEcho(), [False, True])):
        found = echoing(two_inputs, plan).run([A, B])
        assert [not np.shares_memory(np.asarray(one), A) for one in found] == copied
        assert [np.asarray(one).tolist() for one in found] == [A.tolist()] * 2


def test_the_short_way_gives_what_the_long_way_gives(two_inputs: Maker) -> None:
    """Arrays that can be read as they are reach the plan as read-only views, by whatever way they came."""
    plan = Echo()
    runnable = echoing(two_inputs, plan)
    tensor = Tensor.around(A)
    ways: list[Any] = [[A, B], (A, B), {"a": A, "b": B}, [A[:], memoryview(B)], [tensor, B], {"b": B, "a": tensor}]
    for inputs in ways:
        runnable.run(inputs)
        assert np.shares_memory(plan.seen, A)
        assert not plan.seen.flags.writeable
        assert plan.seen is not A
    for other in (np.asfortranarray(A.repeat(2, 0)), A.astype(">f4"), A[:, ::-1], Tensor.around(A[:, ::-1])):
        runnable.run([other, B])
        assert plan.seen.flags.c_contiguous
        assert plan.seen.dtype == np.float32
        assert not plan.seen.flags.writeable
        assert plan.seen.tolist() == np.asarray(other).tolist()


def test_what_is_no_array_is_the_fault_of_the_plan(two_inputs: Maker) -> None:
    class Texts(Echo):
        def run(self, inputs: Any, out: Any = None) -> list[Any]:
            return ["one", "two"]

    with pytest.raises(TypeError, match="it returned a str as an output, wanted an array"):
        echoing(two_inputs, Texts()).run([A, B])


def test_a_number_of_numpy_is_an_array_without_axes(two_inputs: Maker) -> None:
    class Numbers(Echo):
        def run(self, inputs: Any, out: Any = None) -> list[Any]:
            return [np.float32(1), np.float32(2)]

    assert [one.to_numpy().tolist() for one in echoing(two_inputs, Numbers()).run([A, B])] == [1, 2]
