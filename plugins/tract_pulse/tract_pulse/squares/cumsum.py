"""Running sums: of ones, they are positions."""

from __future__ import annotations

import numpy as np

from tract_core.ops.cumsum import CumSum
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import UNKNOWN, Far, choose, exactly
from tract_pulse.registry import BAND, NEUTRAL
from tract_pulse.stream import CannotStream

ROWS = Rows()


@ROWS.row(NEUTRAL, CumSum)
def neutral(op: CumSum, slot: int, axis: int) -> float | None:
    """A window does not hold what came before it."""
    if axis == op.axis:
        raise CannotStream(f"it adds up along axis {axis}, of which a window of positions is there")
    return None


@ROWS.row(BAND, CumSum)
def band(op: CumSum, view: View) -> Far:
    """Of one number, as many times it as there are positions so far."""
    (x,), position = view.inputs, view.position(op.axis)
    if position is None or op.reverse or view.output.datum_type.itemsize < 4:
        return UNKNOWN
    known = x.is_known & x.is_bounded & (x.beyond == -np.inf)
    counted = position if op.exclusive else position.plus(exactly(1.0))
    return choose([(known, counted.times(np.where(known, x.low, 0.0)))], UNKNOWN)
