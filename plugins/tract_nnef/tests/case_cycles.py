"""The cases of an operator's family, written as archives and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from documents import run

import tract_core as tract
from tract_core.model.same import same_model
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES, Case


def cycle_of_cases(family: str, *, others: Sequence[str] = (), refused: Sequence[str] = ()) -> Callable[..., None]:
    """A test: every case comes back the same from an archive.

    Those whose names begin with one of ``others`` may come back as other operators that compute the same. Those of
    ``refused`` may be refused; with symbolic sizes or not.
    """
    cases = default_registry()[CASES].find(family)
    assert cases

    @pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
    @pytest.mark.parametrize("case", cases, ids=str)
    def test(case: Case, symbolic: bool, tmp_path) -> None:
        model = tract.Model.from_typed(case.model(symbolic=symbolic))
        try:
            model.save(tmp_path / "m.tar", format_name="nnef")
        except tract.errors.Unsupported:
            assert case.name.startswith(tuple(refused))
            return
        found = tract.load(tmp_path / "m.tar")
        model.declutter()
        if not same_model(found.typed, model.typed):
            assert case.name.startswith(tuple(others))
            inputs = case.given()
            np.testing.assert_allclose(run(found, *inputs), run(model, *inputs), rtol=1e-6, atol=1e-6)

    return test
