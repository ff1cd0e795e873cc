"""What a run of a random model comes to, on whatever runtime: outputs, or a refusal; and how two of them differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tract_core.errors import TractError
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.strategies import Refused, Traits
from tract_core.testing.tolerance import EXACT, Tolerance, bit_mismatch, mismatch

Outcome = Sequence[Array] | str
"""The outputs, or why there are none."""


def outcome_of(run: Callable[[], Sequence[Array]]) -> Outcome:
    """What a run gives, or why it refuses."""
    try:
        return run()
    except (TractError, Refused) as error:
        return f"refused: {error}"


def outcome_of_model(model: TypedModel, inputs: Sequence[Array]) -> Outcome:
    """What the interpreter makes of a model and its inputs."""
    return outcome_of(partial(TypedSimplePlan(model).run, inputs))


def difference(found: Outcome, wanted: Outcome, traits: Sequence[Traits]) -> str | None:
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
