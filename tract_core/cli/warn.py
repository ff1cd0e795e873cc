"""Warnings on the command line: one plain line each, on standard error, without the place in our sources."""

from __future__ import annotations

import os

import click

from tract_core.texts import printable


def tell(warning: str) -> None:
    """Print a warning."""
    text = printable(" ".join(line.strip() for line in warning.splitlines()))
    color = False if os.environ.get("NO_COLOR") else None
    click.echo(click.style("Warning: ", fg="yellow", bold=True) + text, err=True, color=color)


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """In place of `warnings.showwarning`, which adds the path and the line of the code that warned: by its flags."""
    request = getattr(click.get_current_context(silent=True), "obj", None)
    text = str(message)
    if request is not None:
        from tract_core.cli.wording import on_the_line

        text = on_the_line(text, request)
    tell(text)
