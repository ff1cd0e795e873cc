"""Models that are written and read back: a small one, any one, and the cases of an operator's family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing
from tract_nnef.registry import CORE

import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Exp
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES, Case

INTERCHANGE = Writing(registries=frozenset({CORE}))
"""The registries that the established engine has, without what only this project can say."""


def small_model(fact: str = "B,3,f32", output: str = "y") -> TypedModel:
    """exp(x + [0, 1, 2]), for an input of that fact with three columns."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    bias = model.add_const("bias", np.arange(3, dtype=np.float32).reshape(1, 3))
    (added,) = model.wire_node("added", Add(), [x, bias])
    model.set_outputs(model.wire_node(output, Exp(), [added]))
    return model


def cycled(model: TypedModel, **flags: Any) -> TypedModel:
    """The model that is read from what is written for ``model``. ``flags``: of the writer."""
    return NnefLoader(registry=model.registry).load_bytes(NnefWriter(**flags).to_tar(model))


def text(model: TypedModel, **flags: Any) -> str:
    """What the graph says."""
    return NnefWriter(**flags).text(model)


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
            for one, other in zip(*(_computed(each, case) for each in (found, model)), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)

    return test


def _computed(model: TypedModel, case: Case) -> list[Any]:
    return [one.to_numpy() for one in tract.Model.from_typed(model).into_runnable().run(list(case.given()))]
