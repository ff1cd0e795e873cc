"""Ways to name inputs and outputs, and to call what runs: by number, by name, as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core import Model
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
