"""Every runtime gives what the reference gives, refusals included, for models as they are wired and in normal form."""

from __future__ import annotations

from functools import partial

from hypothesis import given

from tract_core.rules import declutter
from tract_core.runtime.lookup import find_runtime
from tract_core.testing.outcomes import difference, outcome_of, outcome_of_model
from tract_core.testing.strategies import Grown, typed_models

OTHERS = [find_runtime(name) for name in ("cpu", 'cpu(isa="sse2")')]


@given(typed_models(steps=20))
def test_runtimes_agree_with_the_reference(grown: Grown) -> None:
    for model in (grown.model, declutter(grown.model.clone(), check=False)):
        plans = [runtime.prepare(model) for runtime in OTHERS]
        for sizes in grown.sizings:
            inputs = grown.inputs(sizes)
            wanted = outcome_of_model(model, inputs)
            for runtime, plan in zip(OTHERS, plans, strict=True):
                found = outcome_of(partial(plan.spawn().run, inputs))
                assert difference(found, wanted, grown.traits) is None, (runtime, sizes)
