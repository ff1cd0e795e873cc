from __future__ import annotations

import numpy as np
from hypothesis import given

from tract_core.rules import declutter, declutter_with_report
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import interface, operators, random_inputs
from tract_core.testing.strategies import Grown, typed_models
from tract_core.testing.tolerance import Tolerance, mismatch


@given(typed_models(steps=20))
def test_declutter_keeps_the_meaning(grown: Grown) -> None:
    simple = declutter(grown.model.clone(), check=True)
    assert interface(simple) == interface(grown.model)
    inputs = random_inputs(grown.model, grown.sizes)
    wanted = TypedSimplePlan(grown.model).run(inputs)
    for found, expected in zip(TypedSimplePlan(simple).run(inputs), wanted, strict=True):
        assert found.dtype == expected.dtype
        scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
        tolerance = Tolerance(1e-4 * scale, 1e-3) if found.dtype.kind == "f" else Tolerance(0, 0)
        assert mismatch(found, expected, tolerance) is None


@given(typed_models())
def test_declutter_twice_is_declutter_once(grown: Grown) -> None:
    once = declutter(grown.model.clone())
    twice = once.clone()
    report = declutter_with_report(twice)
    assert not report.changed, report.patches
    assert operators(twice) == operators(once)


@given(typed_models(steps=20))
def test_visits_are_bounded(grown: Grown) -> None:
    model = grown.model.clone()
    report = declutter_with_report(model, check=False)
    nodes = len(grown.model.nodes)
    assert report.visits.total() <= 30 * nodes
