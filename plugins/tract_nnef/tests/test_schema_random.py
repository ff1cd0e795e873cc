"""Random models are written and read back, as wired and in normal form: the same, or what computes the same."""

from __future__ import annotations

from functools import partial

from cycles import cycled
from hypothesis import given, settings

from tract_core.errors import DimError, FactError
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.runtime.lookup import find_runtime
from tract_core.testing.outcomes import difference, outcome_of, outcome_of_model
from tract_core.testing.strategies import Grown, typed_models


@settings(max_examples=60, deadline=None)
@given(typed_models(steps=20))
def test_random_models_come_back(grown: Grown) -> None:
    comes_back(grown, grown.model)
    comes_back(grown, grown.model.clone().declutter())


@settings(max_examples=15, deadline=None)
@given(typed_models(steps=150))
def test_large_random_models_come_back(grown: Grown) -> None:
    comes_back(grown, grown.model.clone().declutter())


def comes_back(grown: Grown, model: TypedModel) -> None:
    """Operators that are written in other words have the same meaning, refusals included, at every sizing."""
    try:
        found = cycled(model)
    except (
        FactError,
        DimError,
    ):  # simplifying may find a constant, as an index outside of its axis, that every run refuses
        assert all(isinstance(outcome_of_model(model, grown.inputs(sizes)), str) for sizes in grown.sizings)
        return
    names = [[one.outlet_name(outlet) for outlet in (*one.inputs, *one.outputs)] for one in (found, model)]
    assert names[0] == names[1]
    if same_model(found, model):
        return
    plan = find_runtime("reference").prepare(found)
    for sizes in grown.sizings:
        inputs = grown.inputs(sizes)
        assert (
            difference(outcome_of(partial(plan.spawn().run, inputs)), outcome_of_model(model, inputs), grown.traits)
            is None
        )
