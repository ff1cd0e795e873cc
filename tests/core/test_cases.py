"""Every case of the core, on the reference runtime, with fixed and with symbolic sizes, as wired and decluttered."""

from __future__ import annotations

import numpy as np
import pytest

from tract_core.plugins import default_registry
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.case import CASES, Case
from tract_core.testing.tolerance import mismatch, rounding_of

ALL = [case for cases in default_registry()[CASES].rows().values() for case in cases]


@pytest.mark.parametrize("declutter", [False, True], ids=["as wired", "decluttered"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_case(case: Case, symbolic: bool, declutter: bool) -> None:
    model = case.model(symbolic=symbolic)
    facts = [model.outlet_fact(outlet) for outlet in model.outputs]
    if declutter:
        model.declutter()
    model.check_consistency()
    outputs = TypedSimplePlan(model).run(case.given())
    for fact, found, wanted in zip(facts, outputs, case.outputs(), strict=True):
        assert found.dtype == fact.datum_type.numpy
        tolerance = case.tolerance or rounding_of(fact.datum_type.storage)
        assert mismatch(np.asarray(found), wanted, tolerance) is None
