"""The core of tract: load a model, simplify it, transform it, run it.

The public names are those in ``__init__.pyi``. They are imported when they are first used, so that ``import
tract_core`` costs next to nothing.
"""

from __future__ import annotations

from typing import Any

from tract_core.garbage import uncollected
from tract_core.public_names import public_names
from tract_core.version import version

__all__, _find, _listed = public_names(__name__)


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first asked for; else what an installed format brings under that name."""
    if name == "__version__":
        return version()
    if name in _listed() or name.startswith("_"):
        return _find(name)
    with uncollected():
        from tract_core.api.handles import handle_named

        return handle_named(name)


def __dir__() -> list[str]:
    """The public names, those of installed formats among them: what there is to complete."""
    from tract_core.api.handles import handle_names

    return sorted([*_listed(), *handle_names()])
