"""What the command prints, as data: texts with their looks, and tables of them."""

from __future__ import annotations

from dataclasses import field

from tract_core.frozen import frozen

Styled = str | tuple[str, str]
"""A text; or a text and how it looks on a terminal, as ``bold`` or ``red``."""
Cell = Styled | list[Styled]
"""What stands in one place of a table: a text, or several, one behind the other."""


@frozen
class Column:
    """A column of a table. ``right``: its texts end below each other. ``whole``: none of them is ever folded.

    ``title``: what stands above it. ``style``: how its texts look.
    """

    title: str = ""
    right: bool = False
    whole: bool = False
    style: str = ""


@frozen
class PrintedTable:
    """Rows of cells, of one line or several, below the titles of their columns, where there are any."""

    columns: tuple[Column, ...]
    rows: list[tuple[tuple[Cell, ...], str]] = field(default_factory=list[tuple[tuple[Cell, ...], str]])

    def add(self, *cells: Cell, style: str = "") -> None:
        """A row, which has a cell for every column."""
        self.rows.append((cells, style))

    @property
    def titles(self) -> list[str]:
        """Those of its columns; none where no column has one."""
        titles = [column.title for column in self.columns]
        return titles if any(titles) else []
