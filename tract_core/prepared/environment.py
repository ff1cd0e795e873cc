"""What runs here: the version of Python, the installed distributions, and the sources of ours and of all plugins.

What is kept of a model holds for one environment. To ask `importlib.metadata` for the plugins takes longer than to load
a small model. So the packages that they are in are kept, under a key of what is installed; whether one of their files
has changed, the system says of each without opening it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from time import time
from typing import Final

from tract_core.cache.cache import Cache, Key, cache_here
from tract_core.cache.eviction import PLAN
from tract_core.frozen import frozen
from tract_core.prepared.records import read, written

VARIABLE: Final = "TRACT_PLANS"
"""The variable that is ``0`` where no prepared models are to be kept or used."""

_CHECKS: Final = ("TRACT_CHECK_PATCHES", "TRACT_CHECK_PROGRAMS")
"""Variables of what is checked while models are prepared: who sets one wants that to happen."""

_BEGIN: Final = time()
"""When this process began, about: what is younger may not be what it has imported."""


@frozen
class Environment:
    """What runs here. ``digest``: a hash of all of it; ``installed``: one of what is installed, without its content."""

    digest: str
    installed: str

    def key(self, digest: str) -> Key:
        """The key of something that holds here, of which ``digest`` tells the rest."""
        return _key(self.digest, digest)


def keeps_plans() -> bool:
    """Whether prepared models are kept, and used: unless the environment says otherwise."""
    return os.environ.get(VARIABLE, "1") not in {"", "0"} and not any(map(os.environ.get, _CHECKS))


def environment() -> Environment | None:
    """That of this process; ``None`` where nothing can be kept for others like it."""
    return _environment(tuple(sys.path), _variables(), cache_here()) if keeps_plans() else None


@cache
def _environment(path: tuple[str, ...], variables: str, where: Cache) -> Environment | None:
    installed = _digest(sys.version, *os.uname()[::4] if hasattr(os, "uname") else sys.platform, *_distributions(path))
    packages = _packages(_digest(installed, *path, variables), where)
    if packages is None:
        return None
    files = sorted(found for package in packages for found in _files(package))
    if any(max(status.st_mtime, status.st_ctime) >= _BEGIN for _, status in files):
        return None  # an installer may have put it there after something was imported
    listed = (f"{file} {one.st_size} {one.st_mtime_ns} {one.st_ctime_ns} {one.st_ino}" for file, one in files)
    return Environment(_digest(installed, variables, *listed), installed)


def _variables() -> str:
    """Those of ours that are set, and may change what is made of a model."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("TRACT_")}
    return repr(sorted((name, value) for name, value in ours.items() if not name.startswith("TRACT_CACHE")))


def _distributions(path: tuple[str, ...]) -> Iterator[str]:
    """The metadata of all installed distributions, by name and time: what an installer writes anew."""
    for folder in path:
        try:
            with os.scandir(folder or ".") as entries:
                found = [one for one in entries if one.name.endswith((".dist-info", ".egg-info"))]
                yield from sorted(f"{one.path} {one.stat().st_mtime_ns}" for one in found)
        except OSError:  # what is no folder has none
            continue


def _packages(installed: str, where: Cache) -> list[str] | None:
    """The folders, or single files, of the core and of all plugins, as they are kept, or as they are found now."""
    key = _key(installed, "packages")
    content = where.mapped(key)
    kept = None if content is None else read(key.file, content)
    if kept is None:
        kept = _found_packages()
        where.put_parts(key, written(key.file, kept))
    return kept


def _found_packages() -> list[str]:
    from tract_core.plugins.discovery import installed_plugins

    modules = {found.record.target.partition(":")[0].partition(".")[0] for found in installed_plugins()}
    specs = [find_spec(name) for name in sorted(modules | {__name__.partition(".")[0]})]
    places = [[*(one.submodule_search_locations or ()), *([one.origin] if one.origin else [])] for one in specs if one]
    return [place for one in places for place in one[:1]]


def _files(place: str) -> Iterator[tuple[str, os.stat_result]]:
    """The Python files at a place, and below it."""
    if place.endswith(".py"):
        yield place, os.stat(place)
        return
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".json")):
                yield entry.path, entry.stat()
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)


def _digest(*texts: str) -> str:
    return blake2b("\0".join(texts).encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()


def _key(*texts: str) -> Key:
    return Key(_digest(*texts), True, PLAN)


def digest_of_file(path: Path) -> str | None:
    """That of the content of a file; ``None`` where it may be changing now.

    To read a large file takes longer than to load it. So the digest is kept, under a key of what the system says of the
    file: which one it is, how large, and when it was changed by whatever means.
    """
    status = os.stat(path)
    if max(status.st_mtime, status.st_ctime) > time() - 2:  # a clock of files may be so coarse
        return None
    told = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    key, where = _key("file", repr(told)), cache_here()
    content = where.mapped(key)
    found = None if content is None else read(key.file, content)
    if found is None:
        with path.open("rb") as file:
            digest = blake2b(digest_size=20)
            while piece := file.read(1 << 20):
                digest.update(piece)
        found = digest.hexdigest()
        where.put_parts(key, written(key.file, found))
    return found
