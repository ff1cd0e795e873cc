"""The core of tract: load a model, simplify it, transform it, run it.

The public names are those in ``__init__.pyi``. They are imported when they are first used, so that ``import
tract_core`` costs next to nothing.
"""

from __future__ import annotations

from typing import Any

from tract_core.public_names import public_names
from tract_core.version import version

__all__, _find, __dir__ = public_names(__name__)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    return version() if name == "__version__" else _find(name)
