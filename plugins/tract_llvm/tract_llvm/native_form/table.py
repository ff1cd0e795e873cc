"""The table of the rules."""

from __future__ import annotations

from typing import Final

from tract_core.plugins.keys import table_of_rules

RULES: Final = table_of_rules("native_rules", "how one node is rewritten, before kernels are made for a model")
