"""Positions: what masks are made of."""

from __future__ import annotations

import numpy as np

from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import UNKNOWN, Far, choose
from tract_pulse.registry import BAND

ROWS = Rows()


@ROWS.row(BAND, Range)
def band(op: Range, view: View) -> Far:
    """``start + step * position``, in types that have room for positions."""
    start, _, step = view.inputs
    position = view.position(0)
    if position is None or view.output.datum_type.itemsize < 4:
        return UNKNOWN
    known = start.is_known & step.is_known & start.is_bounded & step.is_bounded
    factor = np.where(known, step.low, 0.0)
    return choose([(known, position.times(factor).plus(start))], UNKNOWN)
