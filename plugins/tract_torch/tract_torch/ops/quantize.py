"""Real numbers as small integers and back."""

from __future__ import annotations

from tract_core.plugins.tables import Rows

ROWS = Rows()
