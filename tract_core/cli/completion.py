"""What a shell offers when the user presses Tab: subcommands, models, symbols, inputs, nodes, runtimes and the like.

The mechanism is click's: ``_TRACT_COMPLETE=bash_source tract`` prints what a shell needs (also ``zsh_source``,
``fish_source``), and `tract_core.cli.shells` speaks with each of them. Whatever goes wrong here gives no offers, never
a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

Items = list[CompletionItem]

_WORD: Final = re.compile(r"[\w./:@+-]+")
"""Names that need no quotes in any shell."""

LARGEST: Final = 50_000_000
"""Bytes of a model that is read while a line is typed; weights in other files do not count."""

MOST_NODES: Final = 1000
"""Names of nodes that are offered."""

PATIENCE: Final = 5.0
"""Seconds that it may take."""


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

    return starting(incomplete, default_registry().formats())


def partners(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """What a model can be compared with."""
    from tract_core.plugins import default_registry
    from tract_core.plugins.keys import PARTNERS

    return starting(incomplete, default_registry()[PARTNERS].names())


def symbols(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The symbols in the sizes of the model's inputs, each to be followed by its value."""
    found = {symbol for _, fact in _inputs_of(ctx) if fact.shape is not None for symbol in _symbols_in(fact.shape)}
    return [CompletionItem(name, type="open") for name in _going_on(sorted(found), "=", incomplete)]


def inputs(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The names of the model's inputs, each to be followed by a fact, with the fact that it has."""
    facts = {f"{name}:": str(fact) for name, fact in _inputs_of(ctx)}
    names = _going_on((name[:-1] for name in facts), ":", incomplete)
    return [CompletionItem(name, type="open", help=facts[name]) for name in names]


def nodes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The names of the model's nodes, with their operators; the first of many."""
    model = _model_of(ctx)
    found = {} if model is None else {node.name: node.op.name for node in model.live_nodes()}
    names = [name for name in found if name.startswith(incomplete) and _WORD.fullmatch(name)]
    return [CompletionItem(name, help=found[name]) for name in names[:MOST_NODES]]


def operators(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The operators that the model's nodes have."""
    model = _model_of(ctx)
    return starting(incomplete, sorted({node.op.name for node in model.live_nodes()} if model is not None else ()))


def _going_on(names: Iterable[str], sign: str, incomplete: str) -> list[str]:
    """The names of a file, each with a sign behind it, that begin so; none that a shell would take for a command."""
    return [f"{name}{sign}" for name in names if _WORD.fullmatch(name) and f"{name}{sign}".startswith(incomplete)]


def _symbols_in(shape: Iterable[Any]) -> Iterable[str]:
    from tract_core.dims import symbols_of

    return (symbol for dim in shape if dim is not None for symbol in symbols_of(dim))


def _inputs_of(ctx: click.Context) -> list[tuple[str, Any]]:
    """Names and facts of the inputs of the model on the line."""
    model = _model_of(ctx)
    if model is None:
        return []
    return [(model.outlet_name(outlet), model.outlet_fact(outlet)) for outlet in model.inputs]


def _model_of(ctx: click.Context) -> Any:
    """The model on the line, as its file has it, if it is one that loads in no time; else None."""
    given = ctx.find_root().params
    try:
        from tract_core.api.formats import find_format
        from tract_core.api.reading import load_with, loader_of
        from tract_core.limits import LoadLimits

        format_name, path = find_format(Path(os.path.expanduser(given["model"])), given.get("format_name"))
        limits = LoadLimits(max_parsed_bytes=LARGEST, deadline_s=PATIENCE)
        return load_with(loader_of(format_name, limits=limits), path)
    except Exception:
        return None


def starting(incomplete: str, names: Iterable[str]) -> Items:
    """The names that begin with what was typed."""
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def files(incomplete: str) -> Items:
    """Whatever files the shell finds."""
    return [CompletionItem(incomplete, type="file")]


def models(incomplete: str) -> Items:
    """Files that are models by their endings, and folders, which go on; where there are neither, any file."""
    from tract_core.plugins import default_registry

    endings = tuple(ending for one in default_registry().formats().values() for ending in one.extensions)
    typed, start = os.path.split(incomplete)
    lead = incomplete[: len(incomplete) - len(start)]
    found: Items = []
    try:
        with os.scandir(os.path.expanduser(typed) or ".") as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
                    continue
                if entry.is_dir():
                    found.append(CompletionItem(f"{lead}{entry.name}/", type="open"))
                elif entry.name.lower().endswith(endings):
                    found.append(CompletionItem(f"{lead}{entry.name}", type="path"))
    except OSError:
        pass
    return found or files(incomplete)
