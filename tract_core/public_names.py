"""The public names of a package: listed once, in the ``__init__.pyi`` beside it, and imported when they are first used.

Type checkers and editors read the stub as it is; at run time it is the table that says which module a name is from, as
SPEC 1 of Scientific Python proposes. So a package can show names of modules that import it.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from tract_core.importing import imported


def public_names(module: str, of: str | None = None) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__all__``, ``__getattr__`` and ``__dir__`` of a module that shows the public names of a package.

    ``of``: the package whose stub is read; default: ``module`` itself. Names are shown that the stub imports under
    themselves, ``Dim as Dim``. Modules that it imports from its own package can be asked for and completed, and are no
    part of ``__all__``.
    """
    package = of or module
    stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    homes = {name.name: one.module or package for one in imports for name in one.names if name.asname == name.name}

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = imported(f"{home}.{name}") if home == package else getattr(imported(home), name)
        setattr(sys.modules[module], name, found)
        return found

    return sorted(name for name, home in homes.items() if home != package), find, lambda: sorted(homes)
