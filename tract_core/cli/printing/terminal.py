"""What is printed, as rich draws it on a terminal: in colours, and folded to its width."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Final

from rich import table as rich
from rich.console import Console as RichConsole
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from tract_core.cli.guard import unguarded
from tract_core.texts import printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

    from tract_core.cli.printing.printed import Cell, PrintedTable, Styled


WIDE: Final = 10_000
"""Characters in a line where no person reads."""


class SafeConsole(RichConsole):
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


class Terminal:
    """Lines and tables, as ``console`` draws them."""

    def __init__(self, console: RichConsole) -> None:
        self.console = console

    def line(self, *texts: Styled, indent: int = 0) -> None:
        """Texts, one behind the other."""
        text = Text.assemble(*texts)
        self.console.print(Padding(text, (0, 0, 0, indent), expand=False) if indent else text)

    def table(self, table: PrintedTable) -> None:
        """A table, whose cells are folded where the terminal is too narrow for them."""
        drawn = rich.Table(box=None, pad_edge=False, header_style="bold", show_header=bool(table.titles))
        for column in table.columns:
            drawn.add_column(
                column.title,
                justify="right" if column.right else "left",
                style=column.style,
                no_wrap=column.whole,
                overflow="ellipsis" if column.whole else "fold",
            )
        for cells, style in table.rows:
            drawn.add_row(*map(_text, cells), style=style)
        self.console.print(drawn)


def standard_output() -> Terminal:
    """Standard output: as wide as it is, or, where it only has the looks of a terminal, as wide as texts are."""
    if sys.stdout.isatty():
        return Terminal(SafeConsole(highlight=False, emoji=False))
    return Terminal(SafeConsole(highlight=False, emoji=False, width=WIDE, soft_wrap=True))


def _text(cell: Cell) -> Text:
    if isinstance(cell, list):
        return Text.assemble(*cell)
    return Text(cell) if isinstance(cell, str) else Text(*cell)
