"""Large networks with symbolic sizes: how often nodes are looked at. `bench/bench_declutter.py` measures the time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.rules import declutter_with_report
from tract_core.testing.declutter import operators, random_inputs, same_outputs
from tract_core.testing.networks import convolutional, transformer
from tract_core.testing.tolerance import Tolerance

Build = Callable[[int], TypedModel]
NETWORKS: list[tuple[Build, int]] = [(transformer, 20), (convolutional, 88)]


@pytest.mark.parametrize(("build", "size"), NETWORKS)
def test_every_node_is_visited_a_few_times(build: Build, size: int) -> None:
    model = build(size)
    nodes = len(model.nodes)
    assert nodes > 2000
    report = declutter_with_report(model, check=False)
    assert report.visits.total() <= 4 * nodes
    assert max(report.visits.values()) <= 12
    assert not declutter_with_report(model, check=False).changed


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (
            transformer,
            {"EinSum", "Add", "Mul", "Sub", "Reduce", "RmsNorm", "Softmax", "GeluExact", "Reshape"},
        ),
        (convolutional, {"Conv", "Add"}),
    ],
)
def test_what_is_left_is_what_counts(build: Build, wanted: set[str]) -> None:
    model = build(2)
    simple = model.clone()
    declutter_with_report(simple)
    assert set(operators(simple)) == wanted
    sizes = {"B": 2, "S": 5, "H": 7, "W": 6}
    same_outputs(simple, model, random_inputs(model, sizes), tolerance=Tolerance(1e-4, 1e-3))


def test_asking_for_the_type_of_an_operator_runs_no_python() -> None:
    """Rules do it thousands of times; the types of protocols and of abstract classes answer in Python."""
    assert type(TypedOp) is type
