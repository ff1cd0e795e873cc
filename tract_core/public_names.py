"""The public names of a package: listed once, in the ``__init__.pyi`` beside it, and imported when they are first used.

Type checkers and editors read the stub as it is; at run time it is the table that says which module a name is from, as
SPEC 1 of Scientific Python proposes. So a package can show names of modules that import it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from tract_core.importing import imported


def public_names(module: str, of: str | None = None) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__all__``, ``__getattr__`` and ``__dir__`` of a module that shows the public names of a package.

    ``of``: the package whose stub is read; default: ``module`` itself. Names are shown that the stub imports under
    themselves: ``from tract_core.api.dim import Dim as Dim``. Modules that it imports from its own
    package can be asked for and completed, and are no part of ``__all__``.
    """
    package = of or module
    homes = dict(_shown(_stub(package)))

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = imported(f"{home}.{name}") if home == package else getattr(imported(home), name)
        setattr(sys.modules[module], name, found)
        return found

    return sorted(name for name, home in homes.items() if home != package), find, lambda: sorted(homes)


def _shown(stub: str) -> Iterator[tuple[str, str]]:
    """The names that a stub shows, and the modules that they are from.

    No parser of Python is needed for what stubs have of it; that takes as long as ten modules.
    """
    for statement in f"\n{stub}".split("\nfrom ")[1:]:
        home, _, names = statement.partition(" import ")
        names = names[1:].partition(")")[0] if names.startswith("(") else names.partition("\n")[0]
        for one in names.split(","):
            name, _, shown = one.partition("#")[0].strip().partition(" as ")
            if name and shown == name:
                yield name, home


def _stub(package: str) -> str:
    """The text of the stub of a package, wherever that is, as in an archive."""
    found = sys.modules.get(package) or imported(package)
    loader: Any = found.__spec__ and found.__spec__.loader
    return loader.get_data(f"{(found.__file__ or '').removesuffix('.py')}.pyi").decode()
