"""The flags that several of the subcommands have, and what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tract_core.cli import completion

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def _models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return completion.models(incomplete)


def file_argument(function: F) -> F:
    """FILE: a policy, of any installed format."""
    return click.argument("file", shell_complete=_models)(function)


def file_arguments(function: F) -> F:
    """FILES: one or several."""
    return click.argument("files", nargs=-1, required=True, shell_complete=_models)(function)


def layer_options(function: F) -> F:
    """What stands around the policy: noise, and memory."""
    options = [
        click.option("-w", "--with-epsilon", "noise", metavar="KEY", help="Give the input KEY standard normal noise."),
        click.option(
            "-r",
            "--recurrent",
            "memory",
            metavar="auto|IN:OUT,...",
            callback=_pairs,
            help="What outputs OUT say goes into inputs IN at the next step of an agent; auto goes by their names.",
        ),
    ]
    return _all(options, function)


def value_options(function: F) -> F:
    """What runs the policy, and what it observes."""
    options = [
        click.option(
            "--runtime",
            default="default",
            show_default=True,
            metavar="NAME",
            shell_complete=completion.runtimes,
            help="What runs it, as 'tract list-runtimes' lists it.",
        ),
        click.option("--random", is_flag=True, help="Random observations. Otherwise agent 3 observes only threes."),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**64 - 1),
            default=0,
            show_default=True,
            metavar="N",
            help="Which noise, and which random observations.",
        ),
        click.option("--json", "as_json", is_flag=True, help="As JSON."),
    ]
    return _all(options, function)


def _all(options: Iterable[Callable[[F], F]], function: F) -> F:
    for option in reversed(list(options)):
        function = option(function)
    return function


def sizes(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    """The sizes that ``1-8,16,32`` lists, each once. Raises BadParameter."""
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise click.BadParameter(f"{part!r} is no size; write them as in 1-8,16,32")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high:
            raise click.BadParameter(f"{part!r} is empty" if low else f"{part!r} begins below 1")
        if high - low >= MOST_SIZES or len(found) >= MOST_SIZES:
            raise click.BadParameter(f"there are more than {MOST_SIZES} sizes")
        found.update(dict.fromkeys(range(low, high + 1)))
    return list(found)


MOST_SIZES = 1000
"""Each of them is a plan of its own."""


def _pairs(_: click.Context, __: click.Parameter, text: str | None) -> list[str] | None:
    """``auto`` as no pairs at all. Raises BadParameter for what is no pair, and for ``auto`` beside pairs."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if parts == ["auto"]:
        return []
    if "auto" in parts:
        raise click.BadParameter("it is either auto, or pairs as IN:OUT,IN:OUT")
    wrong = next((part for part in parts if not all(part.partition(":"))), None)
    if wrong is not None:
        raise click.BadParameter(f"{wrong!r} is no pair; write auto, or pairs as in h_in:h_out,c_in:c_out")
    return parts
