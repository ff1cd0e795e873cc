"""The public names of a package: listed once, in the ``__init__.pyi`` beside it, and imported when they are first used.

Type checkers and editors read the stub as it is; at run time it is the table that says which module a name is from, as
SPEC 1 of Scientific Python proposes. So a package can show names of modules that import it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, Final

from tract_core.importing import imported

_IMPORT: Final = re.compile(r"^from ([\w.]+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_SHOWN: Final = re.compile(r"\b(\w+) as \1\b")
"""What stubs have of Python: no parser is needed for that, which takes as long as ten modules."""


def public_names(module: str, of: str | None = None) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__all__``, ``__getattr__`` and ``__dir__`` of a module that shows the public names of a package.

    ``of``: the package whose stub is read; default: ``module`` itself. Names are shown that the stub imports under
    themselves: ``from tract_core.api.dim import Dim as Dim``. Modules that it imports from its own
    package can be asked for and completed, and are no part of ``__all__``.
    """
    package = of or module
    imports = _IMPORT.findall(_stub(package))
    homes: dict[str, str] = {name: home for home, names in imports for name in _SHOWN.findall(names)}

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = imported(f"{home}.{name}") if home == package else getattr(imported(home), name)
        setattr(sys.modules[module], name, found)
        return found

    return sorted(name for name, home in homes.items() if home != package), find, lambda: sorted(homes)


def _stub(package: str) -> str:
    """The text of the stub of a package, wherever that is, as in an archive."""
    found = sys.modules.get(package) or imported(package)
    loader: Any = found.__spec__ and found.__spec__.loader
    return loader.get_data(f"{(found.__file__ or '').removesuffix('.py')}.pyi").decode()
