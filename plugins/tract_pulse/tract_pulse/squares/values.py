"""Numbers that are known are computed with, by the NumPy meaning of the operator."""

from __future__ import annotations

import numpy as np

from tract_core.model.op import TypedOp
from tract_core.plugins.keys import REFERENCE
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import EITHER, FILL, UNKNOWN, Far, choose, exactly


def of_known_numbers(op: TypedOp, view: View) -> Far:
    """For operators that compute each element from those in the same place: a number, where all inputs are."""
    nothing = EITHER if view.output.datum_type.is_bool() else UNKNOWN
    meaning = view.analysis.whole.registry[REFERENCE].find(type(op))
    kinds = [view.input_fact(slot).datum_type.storage for slot in range(len(view.inputs))]
    inputs = [_taken_out(far) if kind.is_float() else far for far, kind in zip(view.inputs, kinds, strict=True)]
    known = np.logical_and.reduce(np.broadcast_arrays(*(far.is_known for far in inputs)))
    kinds.append(view.output.datum_type.storage)
    if meaning is None or not known.any() or not all(kind.is_float() or kind.is_bool() for kind in kinds):
        return nothing
    arrays = np.broadcast_arrays(*(np.where(far.is_known, far.low, 0.0) for far in inputs))
    with np.errstate(all="ignore"):
        found = np.asarray(meaning(op, *(x.astype(kind.numpy) for x, kind in zip(arrays, kinds[:-1], strict=True))))
    values = found.astype(np.float64)
    beyond = np.maximum.reduce(np.broadcast_arrays(*(far.beyond for far in inputs)))
    return choose([(known & ~np.isnan(values), exactly(values, beyond))], nothing)


def _taken_out(far: Far) -> Far:
    """What a mask took out is minus infinity."""
    return choose([(far.is_flat & (far.high <= FILL), exactly(-np.inf, far.beyond))], far)
