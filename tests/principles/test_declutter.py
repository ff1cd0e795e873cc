from __future__ import annotations

from hypothesis import given

from tract_core.rules import declutter, declutter_with_report
from tract_core.testing.declutter import interface, operators
from tract_core.testing.strategies import Grown, typed_models


@given(typed_models(steps=20))
def test_declutter_keeps_the_interface(grown: Grown) -> None:
    simple = declutter(grown.model.clone(), check=True)
    assert interface(simple) == interface(grown.model)


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
