"""The table ``pulse``: how each operator streams; and those that say so of tensors with two axes of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tract_core.plugins.tables import TableKey, function_row

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_pulse.bands.analysis import View
    from tract_pulse.bands.far import Far
    from tract_pulse.pulsing.node import PulseNode
    from tract_pulse.pulsing.square import SquareNode
    from tract_pulse.stream import Wire

PulseFn = Callable[[Any, "PulseNode"], "Sequence[Wire] | Wire | None"]
"""``(op, node) -> wires``: wire what computes one pulse of the outputs; ``None`` leaves it to the axes mapping.

Raises `CannotStream` where the operator wants of the signal what a stream does not have.
"""

PULSE: TableKey[type, PulseFn] = TableKey("pulse", "how the operator computes one pulse of a stream", function_row)

BandFn = Callable[[Any, "View"], "Far"]
"""``(op, view) -> far``: what is surely known of the output far away from the diagonal of rows and columns."""

BAND: TableKey[type, BandFn] = TableKey(
    "band", "what is known of the output far away from the diagonal, for tensors with two axes of time", function_row
)

NeutralFn = Callable[[Any, int, int], "float | None"]
"""``(op, slot, axis) -> value``: the element that makes no difference where the operator joins an axis of an input.

``None`` where it does not join positions along that axis. Raises CannotStream where there is no such element. A row
says, too, that axes of which the axes mapping knows nothing stay in place.
"""

NEUTRAL: TableKey[type, NeutralFn] = TableKey(
    "neutral", "which element makes no difference to what the operator joins along an axis", function_row
)

WindowFn = Callable[[Any, "SquareNode"], "OutletId"]
"""``(op, node) -> outlet``: wire the rows of one pulse of the output, with a window of columns."""

WINDOW: TableKey[type, WindowFn] = TableKey(
    "window", "how the operator computes the rows of a pulse, with a window of columns", function_row
)
