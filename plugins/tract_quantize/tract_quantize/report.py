"""What the subcommand prints: errors, the nodes that lose most, what stays in floats, and what was tried."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tract_core.api.display import size
from tract_core.cli.printing.printed import Column, PrintedTable
from tract_core.frozen import frozen
from tract_quantize.errors import OutputError
from tract_quantize.losses import NodeLoss
from tract_quantize.quantizing import Quantized, Settings, Trial
from tract_quantize.transforms.static import QuantizeStatic

if TYPE_CHECKING:
    from tract_core.cli.printing.console import Console
    from tract_core.cli.request import Request


@frozen
class Report:
    """Everything that is reported. ``model``, ``output``: the files that were read, and written, if any.

    ``bytes``: what was written has. ``errors``, ``losses``, ``left``, ``trials``: what came out, and what was tried.
    ``how``: the way it was quantised, in words; ``samples``: with how many turns. ``measured_at``: where losses were
    measured: ``node`` or ``output``.
    """

    model: str
    how: str
    samples: int
    output: str | None
    bytes: int | None
    errors: Sequence[OutputError]
    measured_at: str
    losses: Sequence[NodeLoss]
    left: Mapping[str, str]
    trials: Sequence[Trial]

    @staticmethod
    def of(model: str, found: Quantized, settings: Settings, samples: int, place: Path | None) -> Report:
        """The report on what came out, and was written to ``place``."""
        return Report(
            model,
            _how(found),
            samples,
            None if place is None else str(place),
            place.stat().st_size if place is not None and place.is_file() else None,
            found.errors,
            "output" if settings.at_outputs else "node",
            found.losses,
            found.left,
            (),
        )


def _how(found: Quantized) -> str:
    transform = found.transform
    if not isinstance(transform, QuantizeStatic):
        return f"weights of {transform.bits} bits, in blocks of {transform.block}"
    method = "given ranges" if isinstance(transform.ranges, str) else transform.ranges.method
    return f"data of 8 bits, weights of {transform.bits}, by {method}"


def print_report(request: Request, report: Report, flags: Mapping[str, Any]) -> None:
    """For people, or as JSON."""
    if flags["as_json"]:
        click.echo(json.dumps(_finite(asdict(report)), indent=1))
        return
    console = request.console
    names = {one.name for one in report.losses} | report.left.keys()
    console.line(
        (report.model, "bold"), f": {len(names) - len(report.left)} of {len(names)} nodes quantised, {report.how}"
    )
    _print_errors(console, report)
    _print_losses(console, report, flags["top"])
    _print_left(console, report)
    if report.trials:
        _print_trials(console, report.trials)
    if report.output is not None:
        told = f", {size(report.bytes)}" if report.bytes is not None else ""
        console.line("written to ", (report.output, "bold"), told, ", read again, and compared")


def _finite(told: Any) -> Any:
    """Data without numbers that JSON has no words for."""
    if isinstance(told, float):
        return told if isfinite(told) else None
    if isinstance(told, dict):
        return {key: _finite(one) for key, one in cast("dict[str, Any]", told).items()}
    return [_finite(one) for one in cast("list[Any]", told)] if isinstance(told, (list, tuple)) else told


def _print_errors(console: Console, report: Report) -> None:
    table = PrintedTable(
        (Column("output"), Column("error", right=True), Column("largest", right=True), Column("same first", right=True))
    )
    for one in report.errors:
        agreement = "" if one.agreement is None else f"{one.agreement:.2%}"
        table.add(one.name, f"{one.error:.3g}", f"{one.largest:.3g}", agreement)
    samples = "1 sample" if report.samples == 1 else f"{report.samples} samples"
    console.line(f"error, of {samples}:")
    console.table(table)


def _print_losses(console: Console, report: Report, top: int) -> None:
    if not top or not report.losses:
        return
    table = PrintedTable(
        (Column("node"), Column("operator"), Column("weights", right=True), Column("loss", right=True), Column(""))
    )
    for one in report.losses[:top]:
        state = "in floats" if one.name in report.left else ""
        table.add(one.name, one.operator, f"{one.weights:,}", f"{one.loss:.3g}", state)
    more = f", {top} of {len(report.losses)}" if top < len(report.losses) else ""
    told = (
        "what costs the outputs most, each alone"
        if report.measured_at == "output"
        else "what loses most, each by itself"
    )
    console.line(f"{told}{more}:")
    console.table(table)


def _print_left(console: Console, report: Report) -> None:
    if not report.left:
        return
    table = PrintedTable((Column("in floats"), Column("why")))
    for name, why in report.left.items():
        table.add(name, why)
    console.table(table)


def _print_trials(console: Console, trials: Sequence[Trial]) -> None:
    table = PrintedTable(
        (Column("tried"), Column("error", right=True), Column("ms", right=True), Column("quantised", right=True))
    )
    for one in trials:
        table.add(one.name, f"{one.error:.3g}", f"{one.seconds * 1e3:.3g}", str(one.quantized))
    console.table(table)
