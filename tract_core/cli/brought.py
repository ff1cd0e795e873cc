"""The flags that plugins bring: each stands beside those that are there already, and takes the name of none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import click

from tract_core.cli.command import Flag
from tract_core.errors import RegistrationError
from tract_core.plugins import default_registry
from tract_core.plugins.distributions import CORE

FlagT = TypeVar("FlagT", bound="BroughtFlag")


class BroughtFlag(Flag):
    """A flag of what a plugin offers. ``hook``, ``offer``: the hook, and the name of the offer."""

    def __init__(self, *args: Any, hook: str, offer: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.hook = hook
        self.offer = offer


def with_free_names(brought: Iterable[FlagT], there: Iterable[click.Parameter]) -> list[FlagT]:
    """Those of the flags that have no name of one that is ``there``, or of one before them.

    The others are refused: recorded as failures of their plugins, and reported once.
    """
    first = {name: _owner(one) for one in there for name in (*one.opts, *one.secondary_opts)}
    free: list[FlagT] = []
    for flag in brought:
        taken = [name for name in flag.opts if name in first]
        if taken:
            _refuse(flag, taken[0], first[taken[0]])
            continue
        free.append(flag)
        first.update(dict.fromkeys(flag.opts, _owner(flag)))
    return free


def _refuse(flag: BroughtFlag, name: str, first: str) -> None:
    second = _owner(flag)
    whose = f"both {first} and {second} have" if first != second else f"{first} has twice"
    error = RegistrationError(f"{whose} a flag {name}; the first is used", hint=f"rename {flag.offer!r} of {second}")
    default_registry().refuse(flag.hook, flag.offer, f"flag {name}", error)


def _owner(one: click.Parameter) -> str:
    """The distribution that brings a flag."""
    return (default_registry().owner(one.hook, one.offer) or CORE) if isinstance(one, BroughtFlag) else CORE
