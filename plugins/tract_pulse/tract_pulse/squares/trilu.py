"""Triangles: on one side of a diagonal, there are zeros."""

from __future__ import annotations

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.cast import Cast
from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import UNKNOWN, Far, choose, exactly, from_there, hull
from tract_pulse.pulsing.square import SquareNode
from tract_pulse.registry import BAND, NEUTRAL, WINDOW
from tract_pulse.stream import CannotStream

ROWS = Rows()


@ROWS.row(NEUTRAL, Trilu)
def neutral(op: Trilu, slot: int, axis: int) -> float | None:
    """It joins nothing."""
    return None


@ROWS.row(BAND, Trilu)
def band(op: Trilu, view: View) -> Far:
    """The input, or 0, from where on the distance is surely on that side of the diagonal."""
    x, rank = view.inputs[0], view.output.rank
    diagonal, rows, columns = view.constant(1), view.position(rank - 2), view.position(rank - 1)
    if diagonal is None or rows is None or columns is None:
        return UNKNOWN
    distance = columns.plus(rows.times(-1.0)).plus(exactly(-float(diagonal)))
    above, below = distance.at_least(0), distance.times(-1.0).at_least(0, strictly=True)
    if not op.upper:
        distance = distance.times(-1.0)
        above, below = distance.at_least(0), distance.times(-1.0).at_least(0, strictly=True)
    return choose([(below < np.inf, exactly(0, below)), (above < np.inf, from_there(x, above))], hull(x, exactly(0)))


@ROWS.row(WINDOW, Trilu)
def in_block(op: Trilu, node: SquareNode) -> OutletId:
    """The diagonal of the signal is another one in a block, whose columns begin before its rows."""
    rank = node.output_facts[0].rank
    if node.along not in ((rank - 2, rank - 1), (rank - 1, rank - 2)):
        raise CannotStream("its triangles lie along one axis of time, and another axis")
    shift = node.window.before * (1 if node.along.column == rank - 1 else -1)
    x, diagonal = node.inputs
    by = node.model.add_const(f"{node.name}.before", shift)
    by = node.wire(Cast(node.model.outlet_fact(diagonal).datum_type), by, suffix=".before")
    return node.wire(op, x, node.wire(Add(), diagonal, by, suffix=".diagonal"))
