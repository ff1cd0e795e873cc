"""Releases of the established engine's command, downloaded once. Nothing is, before it is asked for."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import platform
import re
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from tract_core.errors import Unsupported
from tract_core.saving import whole_file
from tract_core.trusted_files import Distrusted, trusted_folder
from tract_torch.errors import DownloadError
from tract_torch.established.semantic_version import SemanticVersion

logger: Final = logging.getLogger("tract_torch")

RELEASES: Final = "https://github.com/sonos/tract/releases/download"
"""Where releases are: ``TAG/FILE`` behind it."""

LARGEST: Final = 200 << 20
"""Bytes of a file that is downloaded, at most."""

LARGEST_BINARY: Final = 1 << 30
"""Bytes of what is in it, at most."""

_PIECE: Final = 1 << 16
_MEMBERS: Final = 8
_TRIPLES: Final = {
    ("Linux", "x86_64"): "x86_64-unknown-linux-musl",
    ("Linux", "aarch64"): "aarch64-unknown-linux-musl",
    ("Darwin", "x86_64"): "x86_64-apple-darwin",
    ("Darwin", "arm64"): "aarch64-apple-darwin",
}


class TractBinaryDownloader:
    """The command of one release. ``auto_download``: whether `tract_path` downloads it where it is not there yet.

    ``base_url``: where releases are. ``cache``: the folder in which they are kept, by default one of the user's
    caches. ``sha256``: the checksum of the file, where it is known; else that of the file ``.sha256`` beside it counts,
    if there is one. ``timeout``: seconds that all of it may take. Nothing is done before it is asked for.
    """

    def __init__(
        self,
        version: SemanticVersion | str,
        auto_download: bool = True,
        *,
        base_url: str = RELEASES,
        cache: str | os.PathLike[str] | None = None,
        sha256: str | None = None,
        timeout: float = 300.0,
    ) -> None:
        self.version = SemanticVersion.of(version)
        self.auto_download = auto_download
        self.base_url = base_url.rstrip("/")
        self.sha256 = sha256
        self.timeout = timeout
        self.folder = Path(cache if cache is not None else _users_cache()).absolute() / str(self.version)

    @property
    def arch(self) -> str:
        """What releases call this machine. Raises Unsupported for one that there are none for."""
        machine = platform.machine()
        found = _TRIPLES.get((platform.system(), machine))
        if found is None:
            hint = "build the command yourself, and give its path as specific_tract_binary_path"
            raise Unsupported(f"there are no releases of tract for {platform.system()} on {machine}", hint=hint)
        return found

    @property
    def tract_path(self) -> Path:
        """The command. Raises DownloadError where it is not there and is not to be downloaded, or cannot be.

        Raises DownloadError as well where somebody else may have written what is there.
        """
        path = self.folder / "tract"
        if not _is_there(path):
            if not self.auto_download:
                raise DownloadError("it was not downloaded yet", where=str(path), hint="dl_tract() does it")
            self.dl_tract()
        return path

    def dl_tract(self) -> None:
        """Download the command, unless it is there already. Of several processes that ask, one does it.

        Raises DownloadError, and leaves nothing behind, where it cannot be had whole.
        """
        name = f"tract-{self.arch}-{self.version}.tgz"
        deadline = time.monotonic() + self.timeout
        path = self.folder / "tract"
        if _is_there(path, make=True):
            return
        with _alone(self.folder / "lock", deadline):
            if _is_there(path):
                return
            content = self._release(name, deadline)
            with whole_file(path) as file:
                _unpack(content, file, name)
                file.flush()
                os.chmod(file.name, 0o755)  # before it is found there

    def _release(self, name: str, deadline: float) -> bytes:
        """The file of a release, by its two possible tags. Raises DownloadError."""
        for tag in (f"{self.version}", f"v{self.version}"):
            url = f"{self.base_url}/{tag}/{name}"
            content = _fetched(url, deadline, LARGEST)
            if content is not None:
                _check_sum(content, self.sha256 or _sum_beside(url, name, deadline), url)
                return content
        raise DownloadError(
            f"there is no {name} in the release {self.version}, nor in v{self.version}", where=self.base_url
        )


def _is_there(path: Path, *, make: bool = False) -> bool:
    """Whether there is a file. ``make``: make its folder. Raises DownloadError where others may write to either."""
    try:
        with trusted_folder(path.parent, make=make) as folder, folder.file(path.name):
            return True
    except FileNotFoundError:
        return False
    except Distrusted as why:
        problem = f"others may write to it ({why.problem}), and what is in it is executed"
        raise DownloadError(problem, where=why.where, hint="chmod go-w, or give another folder as cache=...") from None


def _users_cache() -> Path:
    """The folder that ``TRACT_CACHE`` names, or one of the user's caches."""
    named = os.environ.get("TRACT_CACHE")
    if named and named != "0":
        return Path(named).expanduser() / "tract-releases"
    mac = Path.home() / "Library" / "Caches"
    return (mac if sys.platform == "darwin" else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")) / (
        "tract-releases"
    )


def _fetched(url: str, deadline: float, largest: int) -> bytes | None:
    """The content of an address, whole; ``None`` where nothing is there. Raises DownloadError."""
    try:
        with urllib.request.urlopen(url, timeout=_left(deadline, url)) as answer:
            return _content(answer, url, deadline, largest)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in {404, 410}:
            return None
        raise DownloadError(f"the server says {error.code} {error.reason}", where=url) from None
    except (OSError, HTTPException, ValueError) as error:  # ValueError: an address that is none
        reason = getattr(error, "reason", None) or error
        late = isinstance(reason, TimeoutError) or time.monotonic() >= deadline
        raise _too_late(url) if late else DownloadError(f"it cannot be read: {reason}", where=url) from None


def _content(answer: Any, url: str, deadline: float, largest: int) -> bytes:
    told = answer.headers.get("Content-Length")
    found = io.BytesIO()
    while piece := answer.read1(_PIECE):
        found.write(piece)
        if found.tell() > largest:
            raise DownloadError(f"it has more than {largest} bytes", where=url)
        _left(deadline, url)
    if told is not None and told.isdigit() and int(told) != found.tell():
        raise DownloadError(f"the connection ended after {found.tell()} of {told} bytes", where=url)
    return found.getvalue()


def _left(deadline: float, url: str) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise _too_late(url)
    return left


def _too_late(url: str) -> DownloadError:
    return DownloadError("it takes too long", where=url, hint="give more time with timeout=...")


def _sum_beside(url: str, name: str, deadline: float) -> str | None:
    """The checksum in the file beside a release; ``None`` where there is none. Raises DownloadError."""
    content = _fetched(f"{url}.sha256", deadline, _PIECE)
    if content is None:
        logger.warning("%s has no checksum beside it: what came is taken as it is", name)
        return None
    found = re.search(rb"\b[0-9a-fA-F]{64}\b", content)
    if found is None:
        raise DownloadError("there is no checksum in it", where=f"{url}.sha256")
    return found[0].decode()


def _check_sum(content: bytes, wanted: str | None, url: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if wanted is not None and found != wanted.strip().lower():
        raise DownloadError(f"its SHA-256 is {found}, wanted {wanted}", where=url)


def _unpack(content: bytes, target: IO[bytes], name: str) -> None:
    """Write the one file of a ``.tgz``. Raises DownloadError for anything else in it, and for more than is allowed."""
    found = False
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for count, member in enumerate(archive):
                _check_member(member, name)
                if (found and member.isreg()) or count > _MEMBERS:
                    raise DownloadError("it holds several files, wanted one", where=name)
                source = archive.extractfile(member) if member.isreg() else None
                while source is not None and (piece := source.read(_PIECE)):
                    target.write(piece)
                found = found or member.isreg()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise DownloadError(f"it is no compressed tar file: {error}", where=name) from None
    if not found:
        raise DownloadError("it holds no file 'tract'", where=name)


def _check_member(member: tarfile.TarInfo, name: str) -> None:
    """Raises DownloadError for what is neither a folder nor the one file that there should be."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isdir() or (member.isreg() and path.name == "tract")):
        raise DownloadError(f"it holds {member.name!r}, wanted one plain file 'tract'", where=name)
    if member.size > LARGEST_BINARY:
        raise DownloadError(f"{member.name!r} has {member.size} bytes", where=name)


@contextmanager
def _alone(path: Path, deadline: float) -> Generator[None]:
    """Inside, no other process has the same file locked. Raises DownloadError where one keeps it too long."""
    assert sys.platform != "win32", "there are no releases for it"
    import fcntl

    with path.open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    hint = "wait until it is done, or give more time with timeout=..."
                    raise DownloadError("another process downloads it", where=str(path), hint=hint) from None
                time.sleep(0.05)
        yield
