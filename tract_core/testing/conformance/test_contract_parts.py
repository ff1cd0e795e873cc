"""What plans say of their nodes: where they run, and, of those that are able to, what they compute and how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.plugins.registry import Registry
from tract_core.runtime.explain import Explanation, is_constant
from tract_core.runtime.parts import BodyPath, Part, bodies_within
from tract_core.runtime.protocol import MeasuringPlan, ObservablePlan, TimedPlan, running_model
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.models import ones, picked_inside, running_sums, sum_of_exponentials
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_observers_see_and_exchange_tensors",
    "test_observers_see_every_turn_of_a_state",
    "test_plan_explains_every_node",
    "test_timings_are_of_the_nodes_that_run",
]


def _computed(model: TypedModel) -> set[tuple[BodyPath, int]]:
    """The nodes of a model, and of its bodies, but for inputs and constants."""
    return {
        (path, node)
        for path, body in bodies_within(model)
        for node in body.eval_order()
        if not isinstance(body.nodes[node].op, TypedSource) and not is_constant(body.nodes[node].op)
    }


@pytest.mark.parametrize("make", [sum_of_exponentials, picked_inside], ids=["in the model", "in bodies"])
def test_plan_explains_every_node(bench: Bench, make: Callable[[Registry], TypedModel]) -> None:
    """Every node of the model that runs has one placement, which says where, how and why; those of bodies too."""
    model = make(bench.registry)
    plan = bench.runtime.prepare(model)
    explanation, running = plan.explain(), running_model(plan, model)
    assert isinstance(explanation, Explanation)
    assert explanation.runtime == bench.runtime.name
    assert all(one.where and one.how and one.why for one in explanation.placements)
    assert all(one.names == one.part.names(running) for one in explanation.placements)
    placed = Counter((one.part.body, node) for one in explanation.placements for node in one.part.nodes)
    missing = [
        running.nodes[node].name if not path else (path, node) for path, node in _computed(running) - set(placed)
    ]
    assert not missing, f"not placed: {missing}"
    assert max(placed.values()) == 1


def test_observers_see_and_exchange_tensors(bench: Bench) -> None:
    """Of a plan that shows its nodes: an observer sees what leaves each part, and may exchange it."""
    model = sum_of_exponentials(bench.registry)
    plan = bench.runtime.prepare(model)
    if not isinstance(plan, ObservablePlan):
        return
    running, seen = running_model(plan, model), dict[OutletId, Array]()

    def look(part: Part, outputs: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
        assert set(outputs) == set(part.results(running))
        seen.update(outputs)
        return {outlet: np.zeros_like(array) for outlet, array in outputs.items()}

    found = plan.spawn_observed(look).run([ones(2, 3), ones(2, 3)])
    assert {outlet for outlet in running.outputs if (((), outlet.node) in _computed(running))} <= seen.keys()
    np.testing.assert_array_equal(found[0], np.zeros((2, 3)))


def test_observers_see_every_turn_of_a_state(bench: Bench) -> None:
    """Of a plan that shows its nodes: a state that is observed keeps what it keeps, from turn to turn."""
    plan, seen = bench.runtime.prepare(running_sums(bench.registry)), list[Part]()
    if not isinstance(plan, ObservablePlan):
        return
    state = plan.spawn_observed(lambda part, _: seen.append(part))
    for turn in (1, 2):
        (sums,) = state.run([ones(1, 2), np.zeros((1, 2), np.float32)])
        np.testing.assert_array_equal(sums, np.full((1, 2), turn))
        assert len(seen) % turn == 0
        assert seen


def test_timings_are_of_the_nodes_that_run(bench: Bench) -> None:
    """Of a plan that times its nodes: each node of the model has one timing, by itself or in a group."""
    model = sum_of_exponentials(bench.registry)
    plan = bench.runtime.prepare(model)
    if not isinstance(plan, TimedPlan):
        return
    timings, wanted = plan.timed_run([ones(2, 3), ones(2, 3)]), _computed(running_model(plan, model))
    timed = Counter((one.part.body, node) for one in timings for node in one.part.nodes)
    assert set(timed) <= wanted, f"these are no node that runs: {set(timed) - wanted}"
    assert {node for path, node in wanted if not path} == {node for path, node in timed if not path}
    assert max(timed.values()) == 1
    assert all(one.start >= 0 and one.seconds >= 0 for one in timings)


def test_ceilings_are_rates(bench: Bench) -> None:
    """Of a plan that measures what the machine can do: operations and bytes a second, both more than none."""
    plan = bench.runtime.prepare(sum_of_exponentials(bench.registry))
    if isinstance(plan, MeasuringPlan):
        found = plan.ceilings()
        assert 0 < found.operations_per_s < float("inf")
        assert 0 < found.bytes_per_s < float("inf")
