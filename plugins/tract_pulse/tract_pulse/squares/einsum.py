"""Weighted sums: what weighs nothing adds nothing."""

from __future__ import annotations

import numpy as np

from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import UNKNOWN, Far, choose, exactly
from tract_pulse.registry import BAND, NEUTRAL
from tract_pulse.stream import CannotStream

ROWS = Rows()


@ROWS.row(NEUTRAL, EinSum)
def neutral(op: EinSum, slot: int, axis: int) -> float | None:
    """0, along an axis that the output lacks."""
    if op.axes.inputs[slot][axis] in op.axes.outputs[0]:
        return None
    if op.q_output is not None:
        raise CannotStream("it sums products of quantised numbers, of which zero is only known in the run")
    return 0.0


@ROWS.row(BAND, EinSum)
def band(op: EinSum, view: View) -> Far:
    """0 where one of the factors is; the others are taken to be numbers that are not infinite."""
    if op.q_output is not None:
        return UNKNOWN
    none = np.full((1, 1), np.inf)
    beyond = np.minimum.reduce(np.broadcast_arrays(*(np.where(far.is_all(0), far.beyond, none) for far in view.inputs)))
    return choose([(beyond < np.inf, exactly(0, beyond))], UNKNOWN)
