"""Files at URLs, through fsspec: fetched once, and again where the other side says that they changed.

Nothing is fetched but what somebody named: no model's content leads here.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from tract_core.cache.cache import named_folder, named_size
from tract_core.digests import blake2b
from tract_core.errors import CorruptModel, InputError, MissingFile, ModelError, TractError, Unsupported
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.safe_files import check_size
from tract_core.saving import whole_file

_CHECKSUM: Final = "#sha256="

_PIECE: Final = 1 << 20
"""Bytes that are fetched at once."""

_VERSIONS: Final = ("ETag", "etag", "checksum", "sha256", "oid", "mtime", "LastModified", "last_modified", "created")
"""Under which of these names file systems say what tells one content of a file from another."""


def fetched(url: str, limits: LoadLimits = DEFAULT_LIMITS, tell: Callable[[str], object] = str) -> Path:
    """The file at a URL, in the folder of downloads. With ``#sha256=HEX`` behind it, its content is checked.

    A file that is there already is asked about, by its version, and not at all where its content is checked. ``tell``:
    told in a line what was fetched. Raises InputError for what is no URL of a file, Unsupported where what knows the
    scheme is not installed, MissingFile, CorruptModel for another content, LimitExceeded for one of too many bytes, and
    ModelError where it cannot be fetched.
    """
    plain, wanted = _parts(url)
    target = _place(plain)
    if wanted is not None and target.is_file():
        if _digest(target) == wanted:
            return target
        target.unlink()
    found = _fetch(plain, target, limits)
    if found is None:
        return target
    size, digest = found
    if wanted is None:
        tell(f"fetched {plain}: {size} bytes; {_CHECKSUM}{digest} behind the URL checks it")
    elif digest != wanted:
        target.unlink()
        raise CorruptModel(f"its SHA-256 is {digest}, wanted {wanted}", where=plain)
    return target


def _parts(url: str) -> tuple[str, str | None]:
    """The URL, and the checksum behind it in small letters. Raises InputError."""
    plain, mark, checksum = url.partition(_CHECKSUM)
    if mark and not re.fullmatch("[0-9a-fA-F]{64}", checksum):
        raise InputError(f"{checksum!r} is no SHA-256: wanted 64 hexadecimal digits", where=plain)
    if "::" in plain or not _name(plain):
        raise InputError("wanted the URL of one file", where=plain)
    return plain, checksum.lower() if mark else None


def _name(url: str) -> str:
    """What the file is called: the last part of the path, without what no system has in names."""
    path = url.partition("://")[2].split("?")[0].split("#")[0]
    return re.sub(r"[^\w.+-]", "_", path.rpartition("/")[2]).strip(".") if "/" in path else ""


def _place(url: str) -> Path:
    return downloads() / blake2b(url.encode(), digest_size=16).hexdigest() / _name(url)


def downloads() -> Path:
    """The folder of what is fetched, beside that of the cache; for this process alone where nothing is kept."""
    cache_folder = named_folder()
    return _for_this_process() if cache_folder is None else Path(cache_folder).with_name("tract-downloads")


@cache
def _for_this_process() -> Path:
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="tract-", ignore_cleanup_errors=True))
    return Path(_FOLDERS[-1].name)


_FOLDERS: Final[list[tempfile.TemporaryDirectory[str]]] = []
"""Removed when the process ends."""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(url: str, target: Path, limits: LoadLimits) -> tuple[int, str] | None:
    """Fetch a file, unless the one that is there is the same. Returns its size in bytes, and its SHA-256."""
    system, path = _system(url)
    version = target.with_name(f"{target.name}.version")
    try:
        info: Mapping[str, Any] = system.info(path)
        told = json.dumps({name: str(info[name]) for name in _VERSIONS if info.get(name) is not None})
        if told != "{}" and target.is_file() and version.is_file() and version.read_text() == told:
            os.utime(target)
            return None
        check_size(int(info.get("size") or 0), limits)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with system.open(path, "rb") as source, whole_file(target) as file:
            found = _copied(source, file, limits)
    except TractError:
        raise
    except Exception as error:  # whatever it is, it is the file system's
        raise _told(error, url) from error
    version.write_text(told)
    _remove_old(target)
    return found


def _told(error: Exception, url: str) -> TractError:
    """What a file system raised, as one of our errors.

    That of HTTP says of a server that is not there what it says of a file that is not; the cause tells them apart.
    """
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and not isinstance(cause, OSError):
        return MissingFile("there is no such file", where=url)
    found = cause or error
    return ModelError(f"cannot be fetched: {type(found).__name__}: {found}", where=url, hint="check the URL")


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises Unsupported where it is not installed, InputError."""
    extra = 'pip install "tract-core[remote]" brings fsspec and what https:// wants, s3fs and others what theirs do'
    try:
        fsspec: Any = importlib.import_module("fsspec.core")
    except ImportError:
        raise Unsupported(
            "files at URLs are fetched by fsspec, which is not installed", where=url, hint=extra
        ) from None
    try:
        return fsspec.url_to_fs(url)
    except ImportError as error:
        raise Unsupported(f"fsspec needs more for this URL: {error}", where=url, hint=extra) from None
    except ValueError as error:
        raise InputError(str(error), where=url, hint="https://, s3://, gs://, hf:// and others are known") from None


def _copied(source: Any, file: IO[bytes], limits: LoadLimits) -> tuple[int, str]:
    digest, size, end = hashlib.sha256(), 0, time.monotonic() + limits.deadline_s
    while part := source.read(_PIECE):
        size += len(part)
        check_size(size, limits)
        if time.monotonic() > end:
            raise TimeoutError(f"it takes longer than {limits.deadline_s:g} s")
        digest.update(part)
        file.write(part)
    return size, digest.hexdigest()


def _remove_old(new: Path) -> None:
    """Remove the files that were used longest ago, until there are no more bytes than the cache may have."""
    files = [path for path in downloads().glob("*/*") if path != new and not path.name.endswith(".version")]
    there = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in files)
    size = new.stat().st_size + sum(one[1] for one in there)
    for _, bytes_there, path in there:
        if size <= named_size():
            break
        path.unlink(missing_ok=True)
        size -= bytes_there
