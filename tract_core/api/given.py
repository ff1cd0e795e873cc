"""Paths and contents of files, as users give them."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tract_core.errors import InputError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits

if TYPE_CHECKING:
    from pathlib import Path


def checked_path(path: str | os.PathLike[str]) -> Path:
    """A path as users give it. Raises InputError for what is none, and for an empty one."""
    from pathlib import Path  # which takes as long to import as 40 modules of ours

    return Path(checked_text(path))


def checked_text(path: str | os.PathLike[str]) -> str:
    """As `checked_path`, as a text."""
    found: Any = None
    with suppress(TypeError):
        found = os.fspath(path)
    if not isinstance(found, str):
        raise InputError(f"a path is a text or a pathlib.Path, got {type(path).__name__}", hint=hint_for(path))
    if not found:
        raise InputError("the path is empty")
    if is_url(path):
        raise InputError("a path on this machine is wanted here, got a URL", where=found)
    return found


def is_in_memory(given: Any) -> bool:
    """Whether this is no path, nor the content of a file."""
    return not isinstance(given, (str, os.PathLike, bytes, bytearray, memoryview))


_URL: Final = "[A-Za-z][A-Za-z0-9+.-]+://"
"""How a URL begins. A scheme has two letters at least: one is a drive of Windows."""


def is_url(given: object) -> bool:
    """Whether a path as users give it is a URL."""
    return isinstance(given, str) and "://" in given and re.match(_URL, given) is not None


def source_path(path: str | os.PathLike[str], limits: LoadLimits | None = None) -> Path:
    """The path of a file to read: one at a URL is fetched. Raises as `checked_path`, and as `fetched`."""
    return checked_path(source_text(path, limits))


def source_text(path: str | os.PathLike[str], limits: LoadLimits | None = None) -> str:
    """As `source_path`, as a text."""
    if not is_url(path):
        return checked_text(path)
    from tract_core.remote_files import fetched

    return str(fetched(str(path), limits or DEFAULT_LIMITS))


def checked_content(content: bytes) -> bytes:
    """The content of a file as users give it. Raises InputError for what is none."""
    if not isinstance(content, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"load_bytes takes bytes, got {type(content).__name__}", hint=hint_for(content))
    return content


def hint_for(value: Any) -> str | None:
    """What to call for something that was taken for a path, or for a file's content."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "load_bytes(bytes(...)) takes the content of a file"
    if hasattr(value, "SerializeToString"):
        return "a model in memory goes through load_bytes(model.SerializeToString())"
    return "load(path) takes the path of a file" if isinstance(value, (str, os.PathLike)) else None
