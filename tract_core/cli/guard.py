"""What the command prints steers no terminal: what would, in the texts of files, is shown escaped.

That holds for whatever is written to standard output and standard error, also by other libraries and by plugins.
`tract_core.cli.printing.console` writes around the guard, and escapes the texts itself.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import IO, Any, Final

from tract_core.texts import printable_lines

_COLOURS: Final = re.compile(r"(\x1b\[[0-9;]*m)")


class Guard:
    """A text stream through which nothing steers a terminal but, where it is one, the colours that commands choose."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write ``text`` with what steers escaped, and what the encoding has not, too."""
        parts = _COLOURS.split(text) if self.stream.isatty() else [text]
        safe = "".join(part if place % 2 else printable_lines(part) for place, part in enumerate(parts))
        self.stream.write(safe)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write one after the other."""
        for line in lines:
            self.write(line)

    @property
    def encoding(self) -> str:
        """Every text can be written: what the stream's own encoding has not is escaped."""
        return "utf-8"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guarded_output() -> Generator[None]:
    """Inside, standard output and standard error are guarded, and escape what their encoding has not."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = Guard(sys.stdout), Guard(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unguarded(stream: IO[str]) -> IO[str]:
    """The stream behind the guard, for what is meant to steer the terminal."""
    return stream.stream if isinstance(stream, Guard) else stream
