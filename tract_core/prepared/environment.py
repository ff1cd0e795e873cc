"""What runs here: the version of Python, the installed distributions, and the sources of ours and of all plugins.

What is kept of a model holds for one environment. To ask `importlib.metadata` for the plugins takes longer than to load
a small model. So the packages that they are in are kept, under a key of what is installed; whether one of their files
has changed, the system says of each without opening it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from time import time
from typing import Final

from tract_core.cache.cache import Cache, Key, cache_here
from tract_core.cache.entries import PLAN
from tract_core.cache.sources import are_settled, files_at
from tract_core.digests import blake2b, digest_of
from tract_core.frozen import frozen
from tract_core.plugins.refreshed import times_refreshed
from tract_core.prepared.records import found_in, keep_in

VARIABLE: Final = "TRACT_PLANS"
"""The variable that is ``0`` where no prepared models are to be kept or used."""

CHECKS: Final = ("TRACT_CHECK_PATCHES", "TRACT_CHECK_PROGRAMS")
"""Variables of what is checked while models are prepared: who sets one wants that to happen."""

COARSE: Final = 2.0
"""Seconds within which a file may change without its time telling it: some file systems count so coarsely."""


@frozen
class Installed:
    """What is installed. ``digest``: a hash of which distributions there are, without what is in them.

    ``packages``: the folders, or single files, of the core and of all plugins, those left out that an installer copied:
    their files are as they were. ``handles``: where the classes of formats are, by the names of these, empty for none;
    ``endings``: which format a file has whose name ends so, empty where that does not tell it. ``runtimes``: where
    those are, by name; ``default``: the name of the one that ``"default"`` stands for.
    """

    digest: str
    packages: tuple[str, ...]
    handles: Mapping[str, str]
    endings: Mapping[str, str]
    runtimes: Mapping[str, str]
    default: str | None

    def format_of(self, path: str) -> str:
        """The format that the name of a file tells; empty where it tells none."""
        name = os.path.basename(path).lower()
        longest = max((one for one in self.endings if name.endswith(one)), key=len, default="")
        return self.endings.get(longest, "")


@frozen
class Environment:
    """What runs here. ``digest``: a hash of all of it."""

    digest: str

    def key(self, digest: str) -> Key:
        """The key of something that holds here, of which ``digest`` tells the rest."""
        return _key(self.digest, digest)


def keeps_plans() -> bool:
    """Whether prepared models are kept, and used: unless the environment says otherwise."""
    return os.environ.get(VARIABLE, "1") not in {"", "0"} and not any(map(os.environ.get, CHECKS))


def environment() -> Environment | None:
    """That of this process; ``None`` where nothing can be kept for others like it."""
    return _environment(_here()) if keeps_plans() else None


def installed() -> Installed | None:
    """What is installed, where that is kept: plugins need not be looked for then."""
    return _installed(_here()) if keeps_plans() else None


_Here = tuple[tuple[str, ...], str, Cache, int]
"""Where Python looks for modules, variables of ours, the cache, and how often plugins were to be looked for anew."""


def _here() -> _Here:
    return tuple(sys.path), _variables(), cache_here(), times_refreshed()


@cache
def _environment(here: _Here) -> Environment | None:
    found = _installed(here) or _looked_for(here)
    files = sorted(file for package in found.packages for file in files_at(package, ".py", ".json"))
    if not are_settled(files):
        return None
    listed = (f"{file} {one.st_size} {one.st_mtime_ns} {one.st_ctime_ns} {one.st_ino}" for file, one in files)
    return Environment(digest_of(found.digest, here[1], *listed))


@cache
def _installed(here: _Here) -> Installed | None:
    found = found_in(here[2], _key_of_installed(here))
    return found if isinstance(found, Installed) else None


def _looked_for(here: _Here) -> Installed:
    """What is installed, as it is found out now, and kept."""
    from tract_core.plugins import default_registry
    from tract_core.plugins.endings import formats_of_endings
    from tract_core.runtime.lookup import default_name

    registry = default_registry()
    runtimes = registry.runtimes()
    found = Installed(
        _digest_of_installed(here),
        tuple(_packages(here[0])),
        {name: form.handle for name, form in registry.formats().items()},
        formats_of_endings(registry.formats()),
        {name: offer.loader for name, offer in runtimes.items()},
        default_name(runtimes),
    )
    keep_in(here[2], _key_of_installed(here), found)
    return found


def _key_of_installed(here: _Here) -> Key:
    return _key(_digest_of_installed(here), __file__, here[1])  # which tells too whether a checkout hides the core


@cache
def _digest_of_installed(here: _Here) -> str:
    return digest_of(sys.version, *_system(), *_distributions(here[0]))


def _system() -> tuple[str, ...]:
    """The system and the type of the processor; on Windows the version of Python says the latter."""
    return ("win32",) if sys.platform == "win32" else os.uname()[::4]


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


def _packages(path: tuple[str, ...]) -> Iterator[str]:
    from importlib.util import find_spec

    from tract_core.plugins.discovery import installed_plugins

    modules = {found.record.target.partition(":")[0].partition(".")[0] for found in installed_plugins()}
    copied = {os.path.dirname(one.rpartition(" ")[0]) for one in _distributions(path)}
    for name in sorted(modules | {__name__.partition(".")[0]}):
        spec = find_spec(name)
        places = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin or ""]
        if places and os.path.dirname(places[0]) not in copied:
            yield places[0]


def _key(*texts: str) -> Key:
    return Key(digest_of(*texts), True, PLAN)


def digest_of_file(path: str | os.PathLike[str]) -> str | None:
    """That of the content of a file; ``None`` where it may be changing now.

    To read a large file takes longer than to load it. So the digest is kept, under a key of what the system says of the
    file: which one it is, how large, and when it was changed by whatever means.
    """
    status = os.stat(path)
    if max(status.st_mtime, status.st_ctime) > time() - COARSE:
        return None
    told = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    key, where = _key("file", repr(told)), cache_here()
    found = found_in(where, key)
    if found is None:
        with open(path, "rb") as file:
            digest = blake2b(digest_size=20)
            while piece := file.read(1 << 20):
                digest.update(piece)
        found = digest.hexdigest()
        keep_in(where, key, found)
    return found
