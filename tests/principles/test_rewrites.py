"""A rewrite gives what the plain way gives, refusals included; and the plain way gives what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given

from tract_core.errors import TractError
from tract_core.model.typed import TypedModel
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.strategies import Grown, Refused, Traits, typed_models
from tract_core.testing.tolerance import EXACT, Tolerance, bit_mismatch, mismatch

Array = np.ndarray[Any, Any]
Outcome = Sequence[Array] | str
"""The outputs, or why there are none."""


def _outcome(run: Callable[[], Sequence[Array]]) -> Outcome:
    try:
        return run()
    except (TractError, Refused) as error:
        return f"refused: {error}"


def _of_model(model: TypedModel, inputs: Sequence[Array]) -> Outcome:
    return _outcome(partial(TypedSimplePlan(model).run, inputs))


def _difference(found: Outcome, wanted: Outcome, traits: Sequence[Traits]) -> str | None:
    """One sentence on what differs: a refusal, or an output beyond what its traits allow."""
    if isinstance(found, str) or isinstance(wanted, str):
        alike = isinstance(found, str) and isinstance(wanted, str)
        return None if alike else f"found {_brief(found)}, wanted {_brief(wanted)}"
    problems = (_compared(*each) for each in zip(found, wanted, traits, strict=True))
    return next((f"output {slot}: {problem}" for slot, problem in enumerate(problems) if problem), None)


def _brief(outcome: Outcome) -> str:
    return outcome if isinstance(outcome, str) else f"outputs {[array.shape for array in outcome]}"


def _compared(found: Array, wanted: Array, traits: Traits) -> str | None:
    if found.dtype != wanted.dtype:
        return f"type is {found.dtype}, wanted {wanted.dtype}"
    if traits.exact:
        return bit_mismatch(found, wanted) if traits.zeros else mismatch(found, wanted, EXACT)
    # Sums of up to 2,000 products of numbers below 1,000, and a dozen steps on.
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))))
    return mismatch(found, wanted, Tolerance(1e-4 * scale, 1e-3))


@given(typed_models(steps=20))
def test_a_rewrite_keeps_values_and_refusals(grown: Grown) -> None:
    simple = declutter(grown.model.clone(), check=False)
    for sizes in grown.sizings:
        inputs = grown.inputs(sizes)
        found, wanted = _of_model(simple, inputs), _of_model(grown.model, inputs)
        assert _difference(found, wanted, grown.traits) is None, sizes


@given(typed_models(steps=20))
def test_a_model_gives_what_numpy_gives(grown: Grown) -> None:
    for sizes in grown.sizings:
        inputs = grown.inputs(sizes)
        wanted = _outcome(partial(grown.oracle.run, grown.model, inputs, sizes))
        assert _difference(_of_model(grown.model, inputs), wanted, grown.traits) is None, sizes
