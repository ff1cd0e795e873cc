"""The work of ``dump --dot`` and ``dump --svg``: the graph as a picture, in a file or on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.drawing import dot_of, drawn_by_graphviz, picture_of, svg_of
from tract_core.drawing.layout import TooLarge
from tract_core.errors import Unsupported
from tract_core.saving import whole_file

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.drawing import Picture
    from tract_core.model.graph import Graph


def draw(request: Request, model: Graph[Any, Any], flags: dict[str, Any], only: frozenset[int] | None) -> None:
    """Write the pictures that the flags ask for. ``only``: ids of the nodes to draw.

    Raises Unsupported for a graph that is too large to draw, InputError for a file that cannot be written.
    """
    title = Path(request.model or "").name
    picture = picture_of(model, title, constants=flags["constants"], only=only)
    if flags["dot"] is not None:
        _deliver(dot_of(picture), flags["dot"])
    if flags["svg"] is not None:
        with request.progress("drawing"):
            text = _svg(picture)
        _deliver(text, flags["svg"])


def _svg(picture: Picture) -> str:
    """Drawn here, or by Graphviz where that would take too long."""
    try:
        return svg_of(picture)
    except TooLarge as error:
        drawn = drawn_by_graphviz(picture)
        if drawn is None:
            hint = "choose nodes, as with --node-name TEXT; or draw what --dot prints with 'sfdp', of Graphviz"
            raise Unsupported(f"{error}", where="the picture", hint=hint) from None
        return drawn


def _deliver(text: str, path: str) -> None:
    """Write to a file, or for ``-`` to standard output."""
    if path == "-":
        click.echo(text, nl=False)
        return
    with whole_file(path) as file:
        file.write(text.encode())
