from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from onnx_policies import mlp
from plain_loop import random_observations
from tract_inferers import MemoizingDynamicInferer
from tract_inferers.models.policy import Policy
from tract_inferers.models.symbolic import policy_of

import tract_core as tract
from tract_core.errors import InputError, RunError
from tract_core.model.typed import TypedModel


def policy() -> Policy:
    return policy_of(tract.onnx().load_bytes(mlp("N")))


def act(inferer: MemoizingDynamicInferer, rows: int) -> Any:
    observations = random_observations(inferer, rows)
    return inferer.infer_many(range(rows), observations).arrays["action"]


def watched(monkeypatch: pytest.MonkeyPatch, before: Any) -> list[int]:
    """The sizes for which models were made; ``before`` is called with each."""
    made: list[int] = []
    real = Policy.for_rows

    def for_rows(self: Policy, rows: int) -> TypedModel:
        made.append(rows)
        before(rows)
        return real(self, rows)

    monkeypatch.setattr(Policy, "for_rows", for_rows)
    return made


def test_a_plan_is_made_once_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    made = watched(monkeypatch, lambda _: None)
    inferer = MemoizingDynamicInferer(policy(), [3, 2, 3])
    assert made == [2, 3]
    for rows in (2, 3, 5, 5, 2):
        act(inferer, rows)
    assert made == [2, 3, 5]
    assert inferer.sizes == [2, 3, 5]


def test_plans_that_were_not_used_for_long_go(monkeypatch: pytest.MonkeyPatch) -> None:
    made = watched(monkeypatch, lambda _: None)
    inferer = MemoizingDynamicInferer(policy(), capacity=2)
    for rows in (1, 2, 1, 3):
        act(inferer, rows)
    assert inferer.sizes == [1, 3]
    act(inferer, 1)
    act(inferer, 2)
    assert made == [1, 2, 3, 2]


def test_a_plan_that_is_made_holds_nobody_else_up(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go, has_begun = threading.Event(), threading.Event()

    def before(rows: int) -> None:
        if rows == 7:
            has_begun.set()
            assert may_go.wait(20)

    made = watched(monkeypatch, before)
    inferer = MemoizingDynamicInferer(policy(), [2])
    found: list[Any] = []
    waiting = [threading.Thread(target=lambda: found.append(act(inferer, 7))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert has_begun.wait(20)
    act(inferer, 2)
    act(inferer, 3)
    assert not found
    may_go.set()
    for thread in waiting:
        thread.join(20)
    assert len(found) == 3
    assert made.count(7) == 1


def test_failures_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [RunError("no memory")]

    def before(rows: int) -> None:
        if failures:
            raise failures.pop()

    watched(monkeypatch, before)
    inferer = MemoizingDynamicInferer(policy())
    with pytest.raises(RunError, match="no memory"):
        act(inferer, 2)
    assert inferer.sizes == []
    assert act(inferer, 2).shape == (2, 8)


def test_in_the_background_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go, is_there = threading.Event(), threading.Event()

    def before(rows: int) -> None:
        assert may_go.wait(20)

    made = watched(monkeypatch, before)
    inferer = MemoizingDynamicInferer(policy(), background=True)
    first = act(inferer, 4)
    assert inferer.sizes == []
    may_go.set()
    for _ in range(2000):
        if inferer.sizes == [4]:
            break
        is_there.wait(0.01)
    assert inferer.sizes == [4]
    np.testing.assert_allclose(act(inferer, 4), first, rtol=1e-5, atol=1e-6)
    assert made == [4]


def test_what_fails_in_the_background_is_computed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def before(rows: int) -> None:
        tried.set()
        raise RunError("no memory")

    watched(monkeypatch, before)
    inferer = MemoizingDynamicInferer(policy(), background=True)
    act(inferer, 4)
    assert tried.wait(20)
    assert act(inferer, 4).shape == (4, 8)
    assert inferer.sizes == []


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True])
def test_a_capacity_is_checked(capacity: Any) -> None:
    with pytest.raises(InputError, match="wanted an integer from 1"):
        MemoizingDynamicInferer(policy(), capacity=capacity)


def test_more_sizes_than_are_kept_are_refused() -> None:
    with pytest.raises(InputError, match="3 sizes are to be preloaded, and 2 plans are kept"):
        MemoizingDynamicInferer(policy(), [1, 2, 3], capacity=2)
    assert MemoizingDynamicInferer(policy(), [1, 2, 3], capacity=None).sizes == [1, 2, 3]
