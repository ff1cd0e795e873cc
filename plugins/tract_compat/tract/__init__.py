"""The public API of `tract_core` under the name of the established binding."""

from __future__ import annotations

from typing import Any

import tract_core
from tract_core.public_names import public_names

__all__, _, _ = public_names(__name__, of="tract_core")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    return getattr(tract_core, name)


def __dir__() -> list[str]:
    """The public names: what there is to complete."""
    return dir(tract_core)
