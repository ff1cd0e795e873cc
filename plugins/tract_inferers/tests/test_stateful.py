"""A policy is replaced, and its agents live on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep

import numpy as np
import pytest
from policies import Affine, Recurrent
from tract_inferers import (
    BaseWrapper,
    EpsilonInjector,
    HighQualityNoiseGenerator,
    IncompatibleInferer,
    Inferer,
    RecurrentTracker,
    ScratchPadView,
    Slot,
    StatefulInferer,
)
from tract_inferers.snapshot import AgentSnapshot

from tract_core.errors import InputError


def observations(rows: int) -> dict[str, np.ndarray]:
    return {"obs": np.arange(rows, dtype=np.float32)}


def test_a_stack_with_nothing_but_its_bottom_is_the_policy() -> None:
    policy = Affine(2.0)
    stateful = StatefulInferer(BaseWrapper(), policy)
    assert stateful.input_shapes() == policy.input_shapes()
    assert stateful.raw_output_shapes() == policy.raw_output_shapes()
    assert stateful.infer_many([5, 6, 7], observations(3)).arrays["act"].tolist() == [0.0, 2.0, 4.0]
    stateful.begin_agent(3)
    stateful.end_agent(3)
    assert policy.told == [("begin", 3), ("end", 3)]
    assert BaseWrapper().wrap(policy).inferer is policy


def test_another_policy_takes_its_place() -> None:
    old = StatefulInferer(BaseWrapper(), Affine(2.0))
    new = old.with_new_inferer(Affine(3.0))
    assert new.stack is old.stack
    assert new.infer_many([1], {"obs": np.float32([4])}).arrays["act"].tolist() == [12.0]
    assert old.infer_many([1], {"obs": np.float32([4])}).arrays["act"].tolist() == [8.0]
    old.replace_inferer(Affine(5.0))
    assert old.infer_many([1], {"obs": np.float32([4])}).arrays["act"].tolist() == [20.0]


@pytest.mark.parametrize(
    "other",
    [
        [Slot("obs", (1,))],
        [Slot("seen", ())],
        [Slot("obs", (), np.dtype(np.float64))],
        [],
        [Slot("obs", ()), Slot("more", ())],
    ],
)
def test_a_policy_with_other_inputs_is_refused(other: list[Slot]) -> None:
    stateful = StatefulInferer(BaseWrapper(), before := Affine(2.0))
    for change in (stateful.with_new_inferer, stateful.replace_inferer):
        with pytest.raises(IncompatibleInferer, match=r"input [01].*; all inputs of the one before: obs"):
            change(Affine(3.0, inputs=other))
    assert stateful.inferer is before


def test_a_policy_that_hides_something_else_is_refused() -> None:
    class Hides(Affine):
        def output_shapes(self) -> list[Slot]:
            return []

    stateful = StatefulInferer(BaseWrapper(), Affine(2.0))
    with pytest.raises(IncompatibleInferer, match=r"output 0, act: .*, is missing"):
        stateful.replace_inferer(Hides(3.0))


def test_the_stack_is_invoked_for_as_many_rows_as_the_policy_takes_at_once() -> None:
    class Noting(BaseWrapper):
        def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
            rows.append(list(pad.ids))
            super().invoke(inferer, pad)

    rows: list[list[int]] = []
    stateful = StatefulInferer(Noting(), Affine(2.0, size=2))
    assert stateful.infer_many([7, 8, 9], observations(3)).arrays["act"].tolist() == [0.0, 2.0, 4.0]
    assert rows == [[7, 8], [9]]


def test_a_policy_that_takes_fewer_rows_comes_between_the_question_and_the_run() -> None:
    stateful = StatefulInferer(BaseWrapper(), Affine(2.0, size=8))

    class Swapped(StatefulInferer):
        def select_batch_size(self, max_count: int) -> int:
            size = super().select_batch_size(max_count)
            self.replace_inferer(Affine(3.0, size=2))
            return size

    found = Swapped(stateful.stack, stateful.inferer).infer_many(range(5), observations(5))
    assert found.arrays["act"].tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]


def test_a_snapshot_of_what_nothing_remembers_is_empty_and_others_are_refused() -> None:
    stateful = StatefulInferer(BaseWrapper(), Affine(2.0))
    assert stateful.snapshot().agents == ()
    stateful.restore(stateful.snapshot())
    with pytest.raises(InputError, match="snapshot: nothing here remembers 'h'"):
        stateful.restore(AgentSnapshot((1,), {"h": np.zeros(1)}))


def test_a_policy_is_replaced_while_threads_run() -> None:
    stateful = StatefulInferer(BaseWrapper(), Affine(1.0, size=3))
    done = Event()

    def run(_: int) -> set[float]:
        found = set[float]()
        while not done.is_set():
            found |= set(stateful.infer_many(range(7), {"obs": np.ones(7, np.float32)}).arrays["act"].tolist())
        return found

    with ThreadPoolExecutor(3) as pool:
        runs = pool.map(run, range(3))
        for turn in range(300):
            stateful.replace_inferer(Affine(float(turn % 3 + 1), size=turn % 4 + 1))
            sleep(0.0005)
        done.set()
        assert set.union(*runs) == {1.0, 2.0, 3.0}


def test_the_model_in_the_middle_of_short_forms_is_replaced() -> None:
    old, new = Recurrent(), Recurrent(size=1)
    policy = RecurrentTracker.wrap(EpsilonInjector.with_generator(old, HighQualityNoiseGenerator(1), "eps"))
    loop = RecurrentTracker.wrap(EpsilonInjector.with_generator(old, HighQualityNoiseGenerator(1), "eps"))
    seen = {"obs": np.arange(6, dtype=np.float32).reshape(2, 3)}
    for one in (policy, loop):
        one.begin_agents([1, 2])
        one.infer_many([1, 2], seen)
    policy.replace_inferer(new)
    assert policy.select_batch_size(2) == 1
    assert np.array_equal(*(one.infer_many([1, 2], seen).arrays["act"] for one in (policy, loop)))
    second = policy.with_new_inferer(old)
    assert (second.select_batch_size(2), policy.select_batch_size(2)) == (2, 1)
    assert np.array_equal(*(one.infer_many([1, 2], seen).arrays["act"] for one in (second, loop)))


def test_a_policy_with_its_stack_in_the_place_of_the_model() -> None:
    policy, new = (RecurrentTracker.wrap(Recurrent()) for _ in range(2))
    with pytest.raises(IncompatibleInferer, match=r"hint: it has a stack of its own: give .* new\.inferer"):
        policy.replace_inferer(new)
    policy.replace_inferer(new.inferer)
