"""llvmlite, which does not say what types its functions take and give: the one place that imports it."""

from __future__ import annotations

from typing import Any

from llvmlite import binding as _binding  # pyright: ignore[reportMissingTypeStubs] # it has none
from llvmlite import ir as _ir  # pyright: ignore[reportMissingTypeStubs] # it has none

binding: Any = _binding
ir: Any = _ir
