"""What a shell offers when the user presses Tab: names of subcommands, models, runtimes, transforms and formats.

The mechanism is click's: ``_TRACT_COMPLETE=bash_source tract`` prints what a shell needs (also ``zsh_source``,
``fish_source``). Whatever goes wrong here gives no offers, never a message.
"""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

Items = list[CompletionItem]


def runtimes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The installed runtimes, and what stands for the best of them."""
    from tract_core.plugins import default_registry

    return starting(incomplete, ["default", *default_registry().runtimes()])


def transforms(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The installed transforms."""
    from tract_core.plugins import default_registry

    return starting(incomplete, default_registry().transforms())


def formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The installed formats."""
    from tract_core.plugins import default_registry

    return starting(incomplete, default_registry().frontends())


def partners(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """What a model can be compared with."""
    from tract_core.plugins import default_registry
    from tract_core.plugins.keys import PARTNERS

    return starting(incomplete, default_registry()[PARTNERS].rows())


def starting(incomplete: str, names: Iterable[str]) -> Items:
    """The names that begin with what was typed."""
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def files(incomplete: str) -> Items:
    """Whatever files the shell finds."""
    return [CompletionItem(incomplete, type="file")]
