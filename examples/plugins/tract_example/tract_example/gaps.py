"""What the runtime ``toy`` is known not to do. The list is strict: a gap that is closed must leave it."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_core.testing.gaps import KNOWN_GAPS, Gap

ROWS = Rows()

REASON = "inverse hyperbolic functions are too hard for a toy"

ROWS.add(KNOWN_GAPS, "toy", [Gap(f"{name}-*", REASON) for name in ("Acosh", "Asinh", "Atanh")])
