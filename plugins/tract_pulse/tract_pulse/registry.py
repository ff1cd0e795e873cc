"""The table ``pulse``: how each operator streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tract_core.plugins.tables import TableKey, function_row

if TYPE_CHECKING:
    from tract_pulse.pulsing.node import PulseNode
    from tract_pulse.stream import Wire

PulseFn = Callable[[Any, "PulseNode"], "Sequence[Wire] | Wire | None"]
"""``(op, node) -> wires``: wire what computes one pulse of the outputs; ``None`` leaves it to the axes mapping.

Raises `CannotStream` where the operator wants of the signal what a stream does not have.
"""

PULSE: TableKey[type, PulseFn] = TableKey("pulse", "how the operator computes one pulse of a stream", function_row)
