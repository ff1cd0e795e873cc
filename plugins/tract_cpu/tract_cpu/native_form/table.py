"""The table of the rules."""

from __future__ import annotations

from typing import Final

from tract_core.plugins.keys import table_of_rules

RULES: Final = table_of_rules("cpu_rules", "how one node is rewritten, before native code is made for a model")
