"""Masks that put a number in the place of a score."""

from __future__ import annotations

from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import Far, choose, from_there, hull
from tract_pulse.registry import BAND

ROWS = Rows()


@ROWS.row(BAND, Iff)
def band(op: Iff, view: View) -> Far:
    """One of the two, from where on the condition is known; what is true of both, elsewhere."""
    condition, if_true, if_false = view.inputs
    return choose(
        [
            (condition.is_all(1), from_there(if_true, condition.beyond)),
            (condition.is_all(0), from_there(if_false, condition.beyond)),
        ],
        hull(if_true, if_false),
    )
