"""Where results are printed: a terminal as wide as it is, or anything else, where nothing is cut short."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Final

from rich.console import Console
from rich.segment import Segment

from tract_core.cli.guard import unguarded
from tract_core.texts import printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType
    from rich.table import Table

WIDE: Final = 10_000
"""Characters in a line where no person reads."""


class SafeConsole(Console):
    """A console that escapes what steers in the texts that it shows, and itself writes colours and moves the cursor."""

    @property
    def file(self) -> IO[str]:
        """Where it writes: a stream without a guard."""
        return unguarded(super().file)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is shown, with texts escaped."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(printable_lines(text), style)


def make_console(*, plain: bool = False, stderr: bool = False) -> SafeConsole:
    """Standard output, or standard error. ``plain``: without colours, and as wide as if it were no terminal."""
    stream = sys.stderr if stderr else sys.stdout
    if plain or not stream.isatty():
        return SafeConsole(
            no_color=plain or None, width=WIDE, highlight=False, emoji=False, soft_wrap=True, stderr=stderr
        )
    return SafeConsole(highlight=False, emoji=False, stderr=stderr)


def print_table(console: Console, table: Table) -> None:
    """A table, without the blanks that fill its last column where that is of no use."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as lines:
        console.print(table)
    console.file.write("".join(f"{line.rstrip()}\n" for line in lines.get().splitlines()))
