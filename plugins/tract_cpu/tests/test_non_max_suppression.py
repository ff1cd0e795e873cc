"""The best boxes, as native code chooses them, are those that NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_cpu.staged_state import StagedState
from tract_llvm.isa import Isa, of_this_machine

from tract_core.dims import symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.runtime.reference import ReferenceRuntime

ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30]
SIZES = [(1, 1, 0), (1, 1, 1), (1, 1, 2), (2, 3, 7), (1, 2, 40), (0, 2, 5), (2, 0, 5), (1, 1, 300)]
KINDS = ["f16 f16 i32 f16 f16", "bf16 bf16 i64 f32 bf16", "f64 f64 u64 f64 f64", "f32 f16 i64 f64 f64"]
Arrays = list[np.ndarray[Any, Any]]


def model_of(centred: bool, kinds: str = "f32 f32 i64 f32 f32", most: int | None = None) -> TypedModel:
    model, sizes = TypedModel(), ("B,N,4,", "B,C,N,", "", "", "")
    facts = [size + kind for size, kind in zip(sizes, kinds.split(), strict=True)]
    inputs = [model.add_source(f"x{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    if most is not None:
        inputs[2] = model.add_const("most", np.array(most))
        model.inputs = [one for number, one in enumerate(model.inputs) if number != 2]
    model.set_outputs(model.wire_node("y", NonMaxSuppression(centred, symbol("K")), inputs))
    return model


def plan_of(model: TypedModel, isa: Isa | None = None, threads: int = 1) -> CpuPlan:
    plan = CpuPlan(model, isa or of_this_machine()[-1], threads)
    assert isinstance(plan.spawn(), StagedState)
    return plan


def boxes(seed: int, images: int, classes: int, size: int, odd: float = 0.0) -> Arrays:
    """Boxes that often overlap, scores of which many are equal, some of both strange."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 8, (images, size, 4)).astype("f4") + rng.random((images, size, 4), "f4") / 4
    scores = rng.integers(-3, 8, (images, classes, size)).astype("f4") / 4
    for one in (found, scores):
        places = rng.random(one.shape) < odd
        one[places] = rng.choice(ODD, int(places.sum()))
    return [found, scores]


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("odd", [0.0, 0.1])
def test_boxes_are_those_of_the_reference(centred: bool, odd: float, isa: Isa) -> None:
    model = model_of(centred)
    plan, reference = plan_of(model, isa), ReferenceRuntime().prepare(model)
    state, seed = plan.spawn(), 0
    for images, classes, size in [
        (1, 1, 0),
        (1, 1, 1),
        (1, 1, 2),
        (2, 3, 7),
        (1, 2, 40),
        (0, 2, 5),
        (2, 0, 5),
        (1, 1, 300),
    ]:
        for most, overlap, least in [(3, 0.3, 0.0), (1000, 0.0, -1.0), (0, 0.5, 0.0), (-1, 0.5, 0.0), (5, 1.0, np.nan)]:
            seed += 1
            limits = [np.array(most), np.array(overlap, "f4"), np.array(least, "f4")]
            arrays = [*boxes(seed, images, classes, size, odd), *limits]
            (right,) = reference.spawn().run(arrays)
            for one in (state, plan.spawn()):
                np.testing.assert_array_equal(one.run(arrays)[0], right)


@pytest.mark.parametrize(
    "kinds", ["f16 f16 i32 f16 f16", "bf16 bf16 i64 f32 bf16", "f64 f64 u64 f64 f64", "f32 f16 i64 f64 f64"]
)
def test_boxes_and_limits_are_of_any_type_of_floats(kinds: str) -> None:
    model = model_of(False, kinds)
    plan, reference = plan_of(model), ReferenceRuntime().prepare(model)
    types = [model.outlet_fact(outlet).datum_type.storage.numpy for outlet in model.inputs]
    for seed in range(6):
        given = [*boxes(seed, 1, 2, 30), np.array(9), np.array(0.3), np.array(0.3)]
        arrays = [one.astype(kind) for one, kind in zip(given, types, strict=True)]
        np.testing.assert_array_equal(plan.spawn().run(arrays)[0], reference.spawn().run(arrays)[0])
    if "u64" in kinds:
        arrays[2] = np.array(2**64 - 1, np.uint64)
        np.testing.assert_array_equal(plan.spawn().run(arrays)[0], reference.spawn().run(arrays)[0])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("most", [0, 4, 1000])
def test_where_it_is_known_how_many_are_wanted(threads: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    monkeypatch.setattr("tract_cpu.binding.WORK_TO_SHARE", 0)
    model = model_of(False, most=most)
    plan, reference = plan_of(model, threads=threads), ReferenceRuntime().prepare(model)
    for seed in range(3):
        arrays = [*boxes(seed, 2, 5, 90), np.array(0.2, "f4"), np.array(0.5, "f4")]
        np.testing.assert_array_equal(plan.spawn().run(arrays)[0], reference.spawn().run(arrays)[0])
