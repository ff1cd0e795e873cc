"""Every runtime gives what the reference gives, refusals included, for models as they are wired and in normal form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import given, settings

from tract_core.rules import declutter
from tract_core.runtime.lookup import find_runtime
from tract_core.runtime.protocol import Runtime
from tract_core.testing.outcomes import difference, outcome_of, outcome_of_model
from tract_core.testing.strategies import Grown, typed_models

OTHERS = [find_runtime(name) for name in ("cpu", 'cpu(isa="sse2")')]


@given(typed_models(steps=20))
def test_runtimes_agree_with_the_reference(grown: Grown) -> None:
    agree(grown, OTHERS)


@settings(max_examples=settings.default.max_examples // 8)
@given(typed_models(steps=200))
def test_runtimes_agree_on_large_models(grown: Grown) -> None:
    agree(grown, OTHERS[:1])


def agree(grown: Grown, runtimes: Sequence[Runtime]) -> None:
    """Each runtime gives what the reference gives, at every sizing."""
    for model in (grown.model, declutter(grown.model.clone(), check=False)):
        plans = [runtime.prepare(model) for runtime in runtimes]
        for sizes in grown.sizings:
            inputs = grown.inputs(sizes)
            wanted = outcome_of_model(model, inputs)
            for runtime, plan in zip(runtimes, plans, strict=True):
                found = outcome_of(partial(plan.spawn().run, inputs))
                assert difference(found, wanted, grown.traits) is None, (runtime, sizes)
