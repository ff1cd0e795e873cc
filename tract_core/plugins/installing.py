"""How a distribution of this project is installed beside the core that is running: by where that came from.

No package index has this project yet, and what bears one of its names there would be somebody else's. So a line to
paste names a folder or a file, never a name alone, which pip would look up in an index.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple

from tract_core.plugins.distributions import CORE, DISTRIBUTIONS

_NEEDS: Final = {
    "tract-cpu": ("tract-llvm",),
    "tract-cuda": ("tract-llvm",),
    "tract-serve": ("tract-inferers",),
    "tract-torch": ("tract-nnef",),
}
"""Which others, beside the core, a distribution needs: pip would look for them by name."""


class _Origin(NamedTuple):
    """What pip was given for the core: a checkout, or a wheel."""

    path: Path
    editable: bool


def how_to_install(distribution: str) -> str:
    """The line that installs a distribution of this project, from where the core came from.

    Where pip did not note that, as it came by ``--find-links``, ``DIST`` stands for the folder.
    """
    needed = [*(name for name in _NEEDS.get(distribution, ()) if not is_installed(name)), distribution]
    origin = _origin()
    if origin is not None:
        found = [_beside(origin.path, name) for name in needed]
        if None not in found:
            flag = "-e " if origin.editable else ""
            return f"pip install {' '.join(f'{flag}{quote(str(path))}' for path in found)}"
    files = " ".join(f"DIST/{_wheels_of(name)}" for name in needed)
    return f"pip install {files}, where DIST is the folder of wheels that {CORE} is from"


def how_to_upgrade(distribution: str) -> str:
    """What to do about a distribution, of whomever, that is too old."""
    if distribution not in DISTRIBUTIONS:
        return f"pip install --upgrade {distribution}"
    origin = _origin()
    return f"install a newer {distribution}" + (f", as from {str(origin.path)!r}" if origin else "")


def _beside(core: Path, name: str) -> Path | None:
    """What pip takes for a distribution: its folder in a checkout, or its newest wheel beside that of the core."""
    if core.is_dir():
        folder = core / "plugins" / name.replace("-", "_")
        return folder if (folder / "pyproject.toml").is_file() else None
    return max(core.parent.glob(_wheels_of(name)), default=None)


def _wheels_of(name: str) -> str:
    return f"{name.replace('-', '_')}-*.whl"


def _origin() -> _Origin | None:
    """Where the core was installed from, as PEP 610 has pip note it; ``None`` where that is not there any more."""
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # pyright: ignore[reportDeprecated] # `Path.from_uri` is newer than 3.12

    try:
        noted: Any = json.loads(Distribution.from_name(CORE).read_text("direct_url.json") or "{}")
        url = urlsplit(str(noted["url"]))
        path = Path(url2pathname(url.path))  # pyright: ignore[reportDeprecated] # as above
        if url.scheme != "file" or not path.exists():
            return None
        return _Origin(path, bool(noted.get("dir_info", {}).get("editable")))
    except (PackageNotFoundError, ValueError, KeyError, TypeError, AttributeError, OSError):
        return None  # another tool installed it, or nothing did, as where the sources are on the path


def is_installed(name: str) -> bool:
    """Whether a distribution is there, in whatever state."""
    try:
        Distribution.from_name(name)
    except PackageNotFoundError:
        return False
    return True
