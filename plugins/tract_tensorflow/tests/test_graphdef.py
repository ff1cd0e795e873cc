"""Operators of frozen graphs give what TensorFlow gives."""

from __future__ import annotations

import graphdef_cases as cases
import pytest

NAMES = cases.names()
IDS = [f"{family}-{name}" for family, name in NAMES]

LESS_EXACT = {
    "ResizeBicubic": 100,  # TensorFlow takes weights from a table of 1024 places
    "Mfcc": 10,
}
"""How much more than usual the results of an operator may differ."""


def factor(name):
    return next((much for op, much in LESS_EXACT.items() if name.startswith(op)), 1)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize(("family", "name"), NAMES, ids=IDS)
def test_as_tensorflow(family, name, runtime):
    graph, given, wanted = cases.case(family, name)
    found = cases.run(cases.load(graph, len(wanted)), given, runtime)
    cases.assert_close(found, wanted, factor(name))


@pytest.mark.parametrize(("family", "name"), NAMES, ids=IDS)
def test_as_tensorflow_without_sizes(family, name):
    graph, given, wanted = cases.case(family, name)
    model = cases.without_sizes(cases.load(graph, len(wanted)))
    found = cases.run(model, given)
    cases.assert_close(found, wanted, factor(name))
