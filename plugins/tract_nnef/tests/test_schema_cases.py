"""Every case of every distribution is written and read back: nothing that loads cannot be written."""

from __future__ import annotations

import pytest
from cycles import cycled

from tract_core.model.same import same_model
from tract_core.plugins import default_registry
from tract_core.testing.conformance.selection import all_cases

CASES = all_cases(default_registry())


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_comes_back(case, symbolic) -> None:
    model = case.model(symbolic=symbolic)
    found = cycled(model)
    assert same_model(found.declutter(), model.declutter())  # some are said in other words
    assert same_model(cycled(model).declutter(), model)
