"""The hints of the library in the words of the command line: flags for keywords, and lines to paste.

The library speaks to those who write Python; who typed a command looks for a flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from tract_core.cli.line import line_with

if TYPE_CHECKING:
    from tract_core.cli.request import Request

_IN_PYTHON: Final = (
    (r"\bLoadLimits\((\w+)=\.\.\.\)", r"--limit \1=N"),
    (r"\bLoadLimits\b", "--limit"),
    (r"\bset_input_fact\(\d+, *'[^']*'\), or (?=-i )", ""),
    (r" before into_model\b", ""),
    (r", or Pulse\([^()]*\)", ""),
    (r"\bask for 'reference'", "-r reference"),
    (
        r"\bconvert it with \.astype\('(float\w+|bfloat16)'\), a tensor of PyTorch with [^;]*",
        r"--allow-float-casts takes floats of other types, numpy.save('FILE.npy', array.astype('\1')) writes it so",
    ),
    (
        r"\bconvert it with (\.astype\('\w+'\)), a tensor of PyTorch with [^;]*",
        r"numpy.save('FILE.npy', array\1) writes it so",
    ),
    (r"""\bset_input_fact\((?:\d+|["'](?P<name>[^"']*)["']), *["'](?P<fact>[^"']*)["']\)""", "-i {input}"),
    (r"""\bset_input_fact\([^()]*\)""", "-i NAME:FACT"),
    (r"\bset_input_fact, or (?=-i )", ""),
    (r", or (with )?(set_input_fact\b|\w+ in Python\b)", ""),
    (r"'reference' does; or profile_json\b", "-r reference does"),
    (r" on the command line\b", ""),
    (r"\bwith set_symbols\b", "with --set SYM=N"),
    (r"\btry set_symbols\b", "try --set SYM=N"),
)
"""What hints say to Python, and what a command line calls it."""


def on_the_line(hint: str, request: Request) -> str:
    """A hint of the library for somebody who typed a command: its flags, with those that were given repeated."""
    for keyword, flag in _loader_flags(request).items():
        hint = re.sub(rf"\b{re.escape(keyword)}=True", flag, hint)
    for pattern, said in _IN_PYTHON:
        hint = re.sub(pattern, lambda found, said=said: _filled(said, found), hint)
    return re.sub(r"'tract MODEL ([\w-]+)'", lambda found: f"'{line(request, found[1])}'", hint)


def line(request: Request, *command: str) -> str:
    """A line to paste, about the same model, with the global flags that were given."""
    return line_with(request.given, request.model, *command)


def _filled(said: str, found: re.Match[str]) -> str:
    """What stands in place of a match: with its groups, by number or by name."""
    named = found.groupdict()
    if not named:
        return found.expand(said)
    return said.format(input=quote(f"{named['name']}:{named['fact']}" if named["name"] else named["fact"]))


def _loader_flags(request: Request) -> Mapping[str, str]:
    """How the options of loaders are written, by keyword; those of the model's own format win."""
    from tract_core.cli.formats import flags_of
    from tract_core.errors import TractError
    from tract_core.plugins import default_registry

    def formats() -> Iterator[str]:
        yield from default_registry().formats()
        try:
            yield request.pipeline.format_name
        except TractError:
            return  # there is no such file, or nothing that reads it

    found: dict[str, Any] = {}
    for name in formats():
        found |= flags_of(name)
    return found
