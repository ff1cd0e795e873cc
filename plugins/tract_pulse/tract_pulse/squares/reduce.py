"""Sums, products and extremes over columns, and over other axes."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import EITHER, UNKNOWN, Far, choose, exactly
from tract_pulse.registry import BAND, NEUTRAL
from tract_pulse.stream import CannotStream

ROWS = Rows()

_NEUTRAL: Final = {
    Reducer.SUM: 0.0,
    Reducer.PROD: 1.0,
    Reducer.MAX: -np.inf,
    Reducer.MIN: np.inf,
    Reducer.ANY: 0.0,
    Reducer.ALL: 1.0,
}
_OF_EQUALS: Final = {Reducer.MAX, Reducer.MIN, Reducer.ANY, Reducer.ALL}
"""Of elements that are all the same, that element."""


@ROWS.row(NEUTRAL, Reduce)
def neutral(op: Reduce, slot: int, axis: int) -> float | None:
    """What leaves a sum, product or extreme as it is."""
    if axis not in op.axes:
        return None
    if op.reducer not in _NEUTRAL:
        raise CannotStream(f"it takes {op.reducer.value} over all of axis {axis}, along which the signal comes")
    return _NEUTRAL[op.reducer]


@ROWS.row(BAND, Reduce)
def band(op: Reduce, view: View) -> Far:
    """Over other axes, along which all elements are known to be the same."""
    (x,) = view.inputs
    kept = op.reducer in _OF_EQUALS and not any(view.along.has(axis) for axis in op.axes)
    if kept:
        return x
    nothing = EITHER if view.output.datum_type.is_bool() else UNKNOWN
    return choose([(x.is_all(0) & (op.reducer is Reducer.SUM), exactly(0, x.beyond))], nothing)
