"""What tells a function or a class from any other, also after its source has changed: for the keys of object code.

Code of this distribution is told by its name, as the digest of all sources here is part of every key. Code of another
one, as of a compiler that writes kernels, is told by its name and the digest of the sources of its package. What no
name leads to (a function inside of a function, what was typed at a prompt) is told by a number that holds for this
process only, and nothing that depends on it is kept on disk.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite  # pyright: ignore[reportMissingTypeStubs] # it has none

from tract_core.cache.cache import ONLY_HERE, Key
from tract_core.cache.sources import NUMBERS, digest_of_sources
from tract_core.digests import blake2b

_OWN: Final = __name__.partition(".")[0]
_SOURCES: Final = Path(__file__).parents[1]
"""Of this distribution."""


@cache
def origin_of(code: Any) -> str:
    """The text for a function or a class, with those that a class is made from."""
    if not isinstance(code, type):
        return _origin_of(code)
    own, *bases = (_origin_of(one) for one in code.__mro__)
    others = {one.partition("@")[2] or one for one in bases if "@" in one or ONLY_HERE in one}
    return " ".join([own, *sorted(others - {own.partition("@")[2]})])


def _origin_of(code: Any) -> str:
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", None)
    if module is None or name is None or _found(module, name) is not code:
        return f"{ONLY_HERE}{next(NUMBERS)}"
    if module.partition(".")[0] in {_OWN, *sys.stdlib_module_names}:
        return f"{module}:{name}"
    return f"{module}:{name}@{_sources_of(module)}"


def _found(module: str, name: str) -> Any:
    """What a name leads to from a module on; ``None`` where it leads nowhere."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _sources_of(module: str) -> str:
    """The digest of the sources of the package that a module is in, or of its one file."""
    top = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    own = getattr(sys.modules[module], "__file__", None)
    if top is not None and Path(top).name == "__init__.py":
        return digest_of_sources(Path(top).parent)
    return digest_of_sources(Path(own)) if own is not None else f"{ONLY_HERE}{next(NUMBERS)}"


def key_of_code(writer: Any, text: str, target: object) -> Key:
    """The key of the code that a function or a class writes. ``text``, ``target``: as of `key_of`."""
    return key_of(f"{origin_of(writer)} {text}", target, digest_of_sources(_SOURCES))


def key_of(text: str, target: object, sources: str) -> Key:
    """The key of a kernel.

    ``text``: all that its plan says; ``target``: what it is compiled for, told by its `repr`; ``sources``: the digest
    of the code that writes it. How this system calls functions is part of it, too: systems may share a folder.
    """
    whole = "\n".join((text, repr(target), sys.platform, llvmlite.__version__, sources))
    return Key(blake2b(whole.encode(), digest_size=20).hexdigest(), ONLY_HERE not in whole)
