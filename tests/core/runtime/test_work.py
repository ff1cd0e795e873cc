"""How much a part of a model has to do, by counting on fingers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.fft import Fft
from tract_core.runtime.parts import Part
from tract_core.runtime.profile import profile
from tract_core.runtime.reference import ReferenceRuntime
from tract_core.runtime.work import Ceilings, Work, work_of


def model() -> TypedModel:
    """y = tanh(x @ w + b): x: M,4; w: 4,3."""
    found = TypedModel()
    x = found.add_source("x", parse_typed_fact("M,4,f32", found.symbols))
    w, b = found.add_const("w", np.ones((4, 3), "f4")), found.add_const("b", np.ones((1, 3), "f4"))
    (p,) = found.wire_node("p", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), [x, w])
    (s,) = found.wire_node("s", Add(), [p, b])
    found.set_outputs(found.wire_node("y", Tanh(), [s]))
    return found


def part(*names: str) -> Part:
    nodes = model().nodes
    return Part(tuple(node.id for node in nodes if node.name in names))


@pytest.mark.parametrize(
    ("names", "work"),
    [
        (("p",), Work(2 * 5 * 3 * 4, 4 * (20 + 12 + 15))),
        (("s",), Work(2 * 15, 4 * (15 + 3 + 15))),
        (("y",), Work(15, 4 * (15 + 15))),
        (("p", "s", "y"), Work(120 + 30 + 15, 4 * (20 + 12 + 3 + 15))),  # what stays inside is not counted
    ],
)
def test_a_part_reads_and_writes_what_crosses_its_border(names: tuple[str, ...], work: Work) -> None:
    assert work_of(model(), part(*names), {"M": 5}) == work


def test_costs_without_a_formula_are_counted_for_known_sizes() -> None:
    found = TypedModel()
    (y,) = found.wire_node("y", Fft(1), [found.add_source("x", parse_typed_fact("B,S,2,f32", found.symbols))])
    found.set_outputs([y])
    levels, pairs = 3, 5 * 8
    assert work_of(found, Part((y.node,)), {"B": 5, "S": 8}) == Work(2 * 3 * levels * pairs, 2 * 8 * pairs)


def test_without_sizes_nobody_knows() -> None:
    assert work_of(model(), part("p"), {}) is None


def test_what_takes_longest_is_compared() -> None:
    ceilings = Ceilings(operations_per_s=1000.0, bytes_per_s=100.0)
    assert ceilings.share_of(Work(1000, 10), 2.0) == pytest.approx(0.5)
    assert ceilings.share_of(Work(10, 1000), 20.0) == pytest.approx(0.5)
    assert ceilings.share_of(Work(10, 10), 0.0) == 0


def test_profiles_say_how_much_is_done_in_a_second() -> None:
    plan = ReferenceRuntime().prepare(model())
    timed = json.loads(profile(model(), plan, [np.ones((5, 4), "f4")], max_turns=1))
    (product,) = (node for node in timed["nodes"] if node["node_name"] == "p")
    assert (product["operations"], product["bytes"]) == (120, 188)
    assert product["gflop_per_s"] == pytest.approx(120 / product["secs_per_iter"] / 1e9)
    assert product["gb_per_s"] == pytest.approx(188 / product["secs_per_iter"] / 1e9)
    untimed = json.loads(profile(model(), plan, None))
    assert all("operations" not in node for node in untimed["nodes"])


def test_of_two_measurements_the_higher_ones_count() -> None:
    assert Ceilings(1000.0, 50.0).or_better(Ceilings(900.0, 100.0)) == Ceilings(1000.0, 100.0)
