"""Several policies in one program: who is asked what, what comes back, and what is lost by whom."""

from __future__ import annotations

import numpy as np
import pytest
from policies import Affine
from tract_inferers import BrainId, Runtime


def obs(value: float) -> dict[str, np.ndarray]:
    return {"obs": np.array(value, np.float32)}


def told(responses: object) -> dict[int, dict[int, float]]:
    """By brain and agent, what a policy with one output said."""
    return {brain: {agent: float(one["act"]) for agent, one in of.items()} for brain, of in responses.items()}


@pytest.mark.parametrize("run", ["run", "run_threaded"])
def test_every_brain_with_rows_runs_in_the_order_of_insertion(run: str) -> None:
    with Runtime() as runtime:
        double, triple, idle = (runtime.add_inferer(Affine(factor)) for factor in (2, 3, 4))
        runtime.push(triple, 7, obs(1))
        runtime.push(double, 7, obs(1))
        runtime.push_many(double, [9, 8], {"obs": np.array([5, 6], np.float32)})
        found = getattr(runtime, run)()
        assert list(found) == [double, triple]
        assert told(found) == {0: {7: 2, 9: 10, 8: 12}, 1: {7: 3}}
        assert list(found[double]) == [7, 9, 8]
        assert idle not in found
        assert getattr(runtime, run)() == {}


def test_the_number_of_a_brain_is_an_integer() -> None:
    number = Runtime().add_inferer(Affine(1))
    assert isinstance(number, BrainId)
    assert number == 0
    assert repr(number) == "BrainId(0)"
    assert str(number) == "0"
