"""Where results are printed: a terminal as wide as it is, or anything else, where nothing is cut short.

Only `tract_core.cli.printing.terminal` draws lines and tables with rich, whose import takes longer than many a command.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest
from typing import IO, Final, Protocol

from tract_core.cli.guard import unguarded
from tract_core.cli.printing.printed import Cell, Column, PrintedTable, Styled
from tract_core.texts import printable_lines

GAP: Final = "  "
"""What stands between two columns."""


class Console(Protocol):
    """What prints lines and tables."""

    def line(self, *texts: Styled, indent: int = 0) -> None:
        """Texts, one behind the other, ``indent`` characters away from the edge."""
        ...

    def table(self, table: PrintedTable) -> None:
        """A table."""
        ...


def make_console(*, plain: bool = False) -> Console:
    """Standard output. ``plain``: without colours, and as wide as if it were no terminal."""
    if plain or not (sys.stdout.isatty() or _is_forced()):
        return PlainConsole(unguarded(sys.stdout))
    from tract_core.cli.printing.terminal import standard_output

    return standard_output()


def _is_forced() -> bool:
    """Whether the user wants the looks of a terminal anyway, by the variables that rich heeds."""
    return bool(os.environ.get("FORCE_COLOR")) or os.environ.get("TTY_COMPATIBLE") == "1"


class PlainConsole:
    """Texts without colours, in lines as long as they are. What steers terminals is escaped."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def line(self, *texts: Styled, indent: int = 0) -> None:
        """Texts, one behind the other."""
        self._write([f"{' ' * indent}{line}" for line in _plain(list(texts)).split("\n")])

    def table(self, table: PrintedTable) -> None:
        """A table whose columns are as wide as what they hold."""
        titles = [table.titles] if table.titles else []
        rows = [*titles, *([_plain(cell) for cell in cells] for cells, _ in table.rows)]
        lines = [line for row in rows for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue="")]
        widths = [max(map(width, texts)) for texts in zip(*lines, strict=True)]
        filled = (map(_filled, line, table.columns, widths) for line in lines)
        self._write([GAP.join(line).rstrip() for line in filled])

    def _write(self, lines: Sequence[str]) -> None:
        self.stream.write("".join(f"{line}\n" for line in lines))
        self.stream.flush()


def _plain(cell: Cell) -> str:
    """A cell without its looks, and with what steers escaped."""
    texts = cell if isinstance(cell, list) else [cell]
    return printable_lines("".join(one if isinstance(one, str) else one[0] for one in texts))


def width(text: str) -> int:
    """How many places of a line a text takes: some characters take two, and some none."""
    return len(text) if text.isascii() else sum(map(_places, text))


def _places(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _filled(text: str, column: Column, places: int) -> str:
    blanks = " " * (places - width(text))
    return blanks + text if column.right else text + blanks
