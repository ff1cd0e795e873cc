"""Where results are printed: a terminal as wide as it is, or anything else, where nothing is cut short."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

WIDE: Final = 10_000
"""Characters in a line where no person reads."""


def make_console(*, plain: bool = False) -> Console:
    """Standard output. ``plain``: without colours, and as wide as if it were no terminal."""
    if plain or not sys.stdout.isatty():
        return Console(no_color=plain or None, width=WIDE, highlight=False, emoji=False, soft_wrap=True)
    return Console(highlight=False, emoji=False)


def print_table(console: Console, table: Table) -> None:
    """A table, without the blanks that fill its last column where that is of no use."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as lines:
        console.print(table)
    console.file.write("".join(f"{line.rstrip()}\n" for line in lines.get().splitlines()))
