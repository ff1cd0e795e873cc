"""What ``cook`` prints: the model before and after, and how far their outputs are apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tract_core.api.display import size
from tract_core.cli.commands.cook_compare import CookComparison
from tract_core.cli.printing.printed import Column, PrintedTable
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@frozen
class Side:
    """A model: its operators, the bytes of its files, and the seconds that it takes to load and simplify it."""

    operators: int
    bytes: int
    load_s: float


@frozen
class Cooked:
    """Everything that is reported. ``forms``: by how files end, what they are good for.

    ``model``, ``output``: the files that were read and written. ``before``, ``after``: what both of them are.
    ``compared``: how their results differ, for the sizes that were tried.
    """

    model: str
    output: str
    before: Side
    after: Side
    compared: Sequence[CookComparison]
    forms: Mapping[str, str]


def print_report(request: Request, report: Cooked, flags: Mapping[str, Any]) -> None:
    """For people, or as JSON."""
    tolerance = _tolerance(flags)
    if flags["as_json"]:
        largest = max((one.largest for one in report.compared), default=None)
        click.echo(json.dumps({**asdict(report), "largest_difference": largest, "tolerance": tolerance}, indent=1))
        return
    console, before, after = request.console, report.before, report.after
    console.line((report.model, "bold"), " is cooked as ", (report.output, "bold"))
    table = PrintedTable((Column(""), Column("before", right=True), Column("after", right=True), Column("")))
    table.add(
        "operators", str(before.operators), str(after.operators), _times(before.operators, after.operators, "fewer")
    )
    table.add("size", size(before.bytes), size(after.bytes), _times(before.bytes, after.bytes, "smaller"))
    table.add("load time", _time(before.load_s), _time(after.load_s), _times(before.load_s, after.load_s, "faster"))
    console.table(table)
    for ending, costs in report.forms.items():
        console.line(f"{ending}: {costs}")
    if not report.compared:
        console.line("not compared")
        return
    for one in report.compared:
        sizes = ", ".join(f"{name}={value}" for name, value in one.sizes.items())
        state = ("agrees", "green") if one.problem is None else ("differs", "red")
        with_sizes = f" with {sizes}" if sizes else ""
        console.line(state, f"{with_sizes}, largest difference {one.largest:.2g} ({tolerance})")


def _tolerance(flags: Mapping[str, Any]) -> str:
    own = flags["approx_custom"]
    if own is not None:
        return f"allowed {own.absolute:g} + {own.relative:g} of the value"
    return f"allowed: {flags['approx']}"


def _times(before: float, after: float, word: str) -> str:
    """By how much something went down, where that is worth saying."""
    return f"{before / after:.1f} times {word}" if after and before / after >= 1.1 else ""


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"
