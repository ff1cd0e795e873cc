"""The table ``tensorflow``: for each operator of TensorFlow, the function that wires it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_core.plugins.tables import TableKey, function_row

TENSORFLOW: TableKey[str, Callable[..., Any]] = TableKey(
    "tensorflow", "how an operator of TensorFlow is wired, by name", function_row
)
