"""Names of the files in an archive, as the readers and the writers see them.

A name leads downwards from the top of the archive, with ``/`` between its parts. ``./a``, ``a//b`` and ``a/./b`` are
written by some tools, and mean ``a`` and ``a/b``.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

from tract_core.errors import LimitExceeded, UnsafePath

MAX_NAME: Final = 1024
"""Characters of a name."""

PACKED: Final = (".nnef.tgz", ".nnef.tar")
"""How the names of submodels end that are archives of their own."""


def entry_name(written: str) -> str | None:
    """The name of a file as an archive writes it. ``None`` for one to be ignored: a part of it begins with a dot.

    Raises UnsafePath for one that leads out of the archive, LimitExceeded for one that is too long.
    """
    if written.startswith("/"):
        raise UnsafePath(f"the archive names a file {written[:80]!r}, which is absolute", hint=_RENAME)
    return _clean(written)


def wanted_name(asked: str) -> str | None:
    """The name of the file that a model asks for: like `entry_name`, but slashes at the beginning do not count."""
    return _clean(asked.lstrip("/"))


_USUAL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}+")
"""The name of nearly every file: that of one at the top of the archive, with nothing to clean."""


def _clean(written: str) -> str | None:
    if _USUAL.fullmatch(written):
        return written
    if len(written) > MAX_NAME:
        raise LimitExceeded(
            f"the name {written[:40]!r}... of a file has {len(written)} characters, {MAX_NAME} are allowed"
        )
    parts = [part for part in written.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UnsafePath(f"the archive names a file {written[:80]!r}, which is in a parent folder", hint=_RENAME)
    if "\0" in written:
        raise UnsafePath(f"the archive names a file {written[:80]!r}, with a character NUL in it", hint=_RENAME)
    return None if any(part.startswith(".") for part in parts) else "/".join(parts)


def fits_folder(name: str) -> bool:
    r"""Whether each part of a clean name is the name of one file on this system: ``C:x`` and ``a\b`` are not on all."""
    return bool(_USUAL.fullmatch(name)) or all(PurePath(part).name == part for part in name.split("/"))


_RENAME: Final = "an archive names its files relative to its own top: take it from a source that you trust"
