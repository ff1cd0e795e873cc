"""Scores become weights: those that are taken out weigh nothing."""

from __future__ import annotations

import numpy as np

from tract_core.ops.softmax import LogSoftmax, Softmax, SoftmaxOp
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import FILL, UNKNOWN, Far, choose, exactly
from tract_pulse.registry import BAND, NEUTRAL

ROWS = Rows()


@ROWS.row(NEUTRAL, SoftmaxOp)
def neutral(op: SoftmaxOp, slot: int, axis: int) -> float | None:
    """Of minus infinity, the exponential is 0."""
    return -np.inf if axis in op.axes else None


@ROWS.row(BAND, Softmax)
def band(op: Softmax, view: View) -> Far:
    """0 where the score is minus infinity."""
    return _where_out(view, 0.0, Far.between(0, 1))


@ROWS.row(BAND, LogSoftmax)
def band_of_logarithm(op: LogSoftmax, view: View) -> Far:
    """Minus infinity stays what it is."""
    return _where_out(view, -np.inf, UNKNOWN)


def _where_out(view: View, value: float, otherwise: Far) -> Far:
    (x,) = view.inputs
    return choose([(x.is_flat & (x.high <= FILL), exactly(value, x.beyond))], otherwise)
