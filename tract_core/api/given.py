"""Paths and contents of files, as users give them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from tract_core.errors import InputError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits


def checked_path(path: str | os.PathLike[str]) -> Path:
    """A path as users give it. Raises InputError for what is none, and for an empty one."""
    try:
        found = Path(os.fspath(path))
    except TypeError:
        raise InputError(
            f"a path is a text or a pathlib.Path, got {type(path).__name__}", hint=hint_for(path)
        ) from None
    if not os.fspath(path):
        raise InputError("the path is empty")
    if is_url(path):
        raise InputError("a path on this machine is wanted here, got a URL", where=str(path))
    return found


_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
"""How a URL begins. A scheme has two letters at least: one is a drive of Windows."""


def is_url(given: object) -> bool:
    """Whether a path as users give it is a URL."""
    return isinstance(given, str) and _URL.match(given) is not None


def source_path(path: str | os.PathLike[str], limits: LoadLimits | None = None) -> Path:
    """The path of a file to read: one at a URL is fetched. Raises as `checked_path`, and as `fetched`."""
    if not is_url(path):
        return checked_path(path)
    from tract_core.remote_files import fetched

    return fetched(str(path), limits or DEFAULT_LIMITS)


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
