"""The public API of `tract_core` under the name of the established binding."""

from __future__ import annotations

from typing import Any

from tract_core.public_names import public_names
from tract_core.version import version

__all__, _find, __dir__ = public_names(__name__, of="tract_core")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    return version() if name == "__version__" else _find(name)
