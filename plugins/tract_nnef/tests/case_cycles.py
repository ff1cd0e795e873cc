"""The cases of an operator's family, written for the established engine and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from cycle import cycled
from documents import run
from tract_nnef.options import Writing
from tract_nnef.registry import CORE

import tract_core as tract
from tract_core.model.same import same_model
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES, Case

INTERCHANGE = Writing(registries=frozenset({CORE}))
"""The registries that the established engine has, without what only this project can say."""


def cycle_of_cases(family: str, *, others: Sequence[str] = (), refused: Sequence[str] = ()) -> Callable[..., None]:
    """A test: every case comes back the same from an archive that the established engine reads.

    Those whose names begin with one of ``others`` may come back as other operators that compute the same. Those of
    ``refused`` may be refused; with symbolic sizes or not.
    """
    cases = default_registry()[CASES].find(family)
    assert cases

    @pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
    @pytest.mark.parametrize("case", cases, ids=str)
    def test(case: Case, symbolic: bool) -> None:
        model = case.model(symbolic=symbolic)
        try:
            found = cycled(model, how=INTERCHANGE)
        except tract.errors.Unsupported:
            assert case.name.startswith(tuple(refused))
            return
        if not same_model(found.declutter(), model.declutter()):
            assert case.name.startswith(tuple(others))
            models = [tract.Model.from_typed(one) for one in (found, model)]
            found_arrays, expected = (run(one, *case.given()) for one in models)
            np.testing.assert_allclose(found_arrays, expected, rtol=1e-6, atol=1e-6)

    return test
