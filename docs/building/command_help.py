"""``:::{command-help}``: every subcommand of the command with its usage and its flags, as click has them.

``sphinx-click`` does this for most commands. Here subcommands are found by name when they are asked for, usages are
written by the frame (MODEL stands in front of the subcommand), and flags have groups: it knows nothing of the three.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tract_core.cli.frame import app as tract


def contexts(context: click.Context) -> Iterator[click.Context]:
    """A command and all that are below it, in the order of the help."""
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (found := command.get_command(context, name)) is not None:
                yield from contexts(click.Context(found, info_name=name, parent=context, **found.context_settings))


def described(context: click.Context) -> Iterator[str]:
    """A command in reStructuredText: usage, what it does, and its flags, each of which can be linked to."""
    usage = context.command.get_usage(context).removeprefix("Usage: ")
    yield from ("::", "", *(f"   {line.strip()}" for line in usage.splitlines()), "")
    for paragraph in inspect.cleandoc(context.command.help or "").split("\n\n"):
        yield from preformatted(paragraph) if paragraph.startswith("\b") else (escaped(paragraph), "")
    yield from (f".. program:: {context.command_path}", "")
    title = ""
    for option in context.command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is None:
            continue
        if (group := getattr(option, "group", "Flags")) != title:
            title = group
            yield from (f".. rubric:: {title}", "")
        yield from (f".. option:: {record[0]}", "", f"   {escaped(record[1])}", "")
    for paragraph in (context.command.epilog or "").split("\n\n"):
        yield from preformatted(paragraph) if paragraph.startswith("\b") else (escaped(paragraph), "")


def preformatted(paragraph: str) -> Iterator[str]:
    """Lines that are not to be wrapped."""
    yield from ("::", "", *(f"   {line}" for line in paragraph.splitlines()[1:]), "")


def escaped(text: str) -> str:
    """A text that is no reStructuredText, in one line."""
    return re.sub(r"([\\*`_|])", r"\\\1", " ".join(text.split()))


class CommandHelp(SphinxDirective):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """The sections, in one another as the commands are."""
        root = click.Context(tract, info_name="tract", terminal_width=100, **tract.context_settings)
        return [self._section(context) for context in contexts(root)]

    def _section(self, context: click.Context) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(context.command_path)])
        section += nodes.title("", "", nodes.literal("", context.command_path))
        text = StringList(["````{eval-rst}", *described(context), "````"], context.command_path)
        self.state.nested_parse(text, 0, section)
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
