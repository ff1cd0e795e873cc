"""A rewrite gives what the plain way gives, refusals included; and the plain way gives what NumPy gives."""

from __future__ import annotations

from functools import partial

from hypothesis import given

from tract_core.rules import declutter
from tract_core.testing.outcomes import difference, outcome_of, outcome_of_model
from tract_core.testing.strategies import Grown, typed_models


@given(typed_models(steps=20))
def test_a_rewrite_keeps_values_and_refusals(grown: Grown) -> None:
    simple = declutter(grown.model.clone(), check=False)
    for sizes in grown.sizings:
        inputs = grown.inputs(sizes)
        found, wanted = outcome_of_model(simple, inputs), outcome_of_model(grown.model, inputs)
        assert difference(found, wanted, grown.traits) is None, sizes


@given(typed_models(steps=20))
def test_a_model_gives_what_numpy_gives(grown: Grown) -> None:
    for sizes in grown.sizings:
        inputs = grown.inputs(sizes)
        wanted = outcome_of(partial(grown.oracle.run, grown.model, inputs, sizes))
        assert difference(outcome_of_model(grown.model, inputs), wanted, grown.traits) is None, sizes
