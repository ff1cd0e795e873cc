"""What archives say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tract_core.errors import VersionError
from tract_nnef.syntax import ast

PROPERTIES: Final = "tract_core_properties"
"""The fragment that holds the properties of a model."""

FORMAT: Final = "beta1"
"""The version of the format, which the established engine gives to the operators that it adds to the standard."""

READ: Final = frozenset({FORMAT})
"""The versions that can be read. A file that says none is NNEF as it is."""

WRITER_VERSION: Final = "tract_nnef_ser_version"
FORMAT_VERSION: Final = "tract_nnef_format_version"
OF_THE_FILE: Final = frozenset({WRITER_VERSION, FORMAT_VERSION})
"""Properties that say who wrote the archive, in which version of the format: of the file, and not of the model."""


def check_version(document: ast.Document) -> None:
    """Raises VersionError for a format that cannot be read: what its operators mean is not known."""
    texts = dict(_texts(document))
    found = texts.get(FORMAT_VERSION, FORMAT)
    if found not in READ:
        writer = texts.get(WRITER_VERSION)
        raise VersionError(
            f"the archive is of version {found[:40]!r} of the format, {' and '.join(sorted(READ))} can be read"
            + (f"; its writer was of version {writer[:40]!r}" if writer else ""),
            hint="update tract-nnef, or cook the model again with the version that is installed",
        )


def _texts(document: ast.Document) -> Iterator[tuple[str, str]]:
    """The properties that are texts, as they are written."""
    for fragment in document.fragments:
        if fragment.name != PROPERTIES or not fragment.body or not isinstance(fragment.body[0].value, ast.Array):
            continue
        for pair in fragment.body[0].value.items:
            parts = pair.items if isinstance(pair, ast.Tuple) else ()
            held = [part.value for part in parts if isinstance(part, ast.Literal)]
            if len(held) == 2 and isinstance(held[0], str) and isinstance(held[1], str):
                yield held[0], held[1]
