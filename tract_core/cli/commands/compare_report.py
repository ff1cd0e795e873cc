"""What ``compare`` prints: a line per tensor, with its largest and its mean difference, and one per output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from tract_core.cli.commands.halves import Half, half_of, what_is_normal
from tract_core.cli.commands.show import plain
from tract_core.frozen import frozen
from tract_core.testing.tolerance import distances

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.data import DatumType

Array = np.ndarray[Any, Any]

NAME_WIDTH: Final = 36
"""Characters up to which names are filled, so that the figures behind them stand in columns."""


@frozen
class Verdict:
    """One tensor of the model: whether the reference has it, and how they differ, if they do.

    ``largest``, ``mean``: of the absolute differences of the elements; ``None`` where there are none to be had.
    ``output``: whether it is an output of the model. ``unfused``: whether it was computed in another program than
    the one that runs, as there it is inside a group of nodes that are fused. ``half``: of f16 and bf16, how far
    that is in steps of the type. ``name``: of the tensor; ``op``: of the operator that computes it. ``compared``:
    whether the reference has it. ``problem``: how they differ, in a sentence; ``None`` where they agree.
    """

    name: str
    op: str
    compared: bool
    problem: str | None
    largest: float | None = None
    mean: float | None = None
    output: bool = False
    unfused: bool = False
    half: Half | None = None

    @staticmethod
    def of(
        name: str, op: str, found: Array, wanted: Array, *, problem: str | None, halves: DatumType | None, **more: bool
    ) -> Verdict:
        """The verdict on a tensor that the reference has. ``problem``: how it differs, where that is too much.

        ``halves``: the type of halves that the model computes in.
        """
        largest, mean = distances(found, wanted) or (None, None)
        return Verdict(name, op, True, problem, largest, mean, half=half_of(found, wanted, halves), **more)


@frozen
class Reference:
    """What to compare with: a name for people, and tensors by their names. ``title``: that name."""

    title: str
    tensors: Mapping[str, Array]


def print_verdicts(
    request: Request, reference: Reference, verdicts: Sequence[Verdict], flags: Mapping[str, Any]
) -> None:
    """All verdicts, as the flags ask for them: for people, only what differs, or as JSON."""
    compared = sum(verdict.compared for verdict in verdicts)
    if flags["as_json"]:
        first = next((verdict.name for verdict in verdicts if verdict.problem is not None), None)
        tensors = [_as_json(verdict) for verdict in verdicts]
        content = {"reference": reference.title, "compared": compared, "first": first, "tensors": tensors}
        click.echo(json.dumps(content, indent=1))
        return
    console = request.console
    shown = [one for one in verdicts if one.problem is not None or (one.compared and not flags["quiet"])]
    op_width = max((len(verdict.op) for verdict in shown), default=0)
    name_width = min(NAME_WIDTH, max((len(verdict.name) for verdict in shown), default=0))
    for verdict in shown:
        state = ("agrees ", "green") if verdict.problem is None else ("differs", "red")
        name = f"{verdict.name:{name_width}}" if _figures(verdict) else verdict.name
        place = "  outside of its group" if verdict.unfused else ""
        console.line(state, f" {verdict.op:{op_width}} ", (name, "bold"), _figures(verdict), place)
        if verdict.problem is not None:
            console.line(f"        {verdict.problem}")
    if not flags["quiet"]:
        for verdict in verdicts:
            if verdict.output and verdict.compared:
                console.line("output ", (verdict.name, "bold"), _figures(verdict))
        for sentence in what_is_normal((one.name, one.half) for one in verdicts if one.half is not None):
            console.line(sentence)
        told = f"{compared} of {len(verdicts)} tensors, whose names both have"
        console.line(f"compared with {reference.title}: {told}")


def _figures(verdict: Verdict) -> str:
    if verdict.largest is None or verdict.mean is None:
        return ""
    return f"  largest {verdict.largest:<8.2g} mean {verdict.mean:.2g}"


def _as_json(verdict: Verdict) -> dict[str, Any]:
    content = asdict(verdict)
    figures = {name: content[name] for name in ("largest", "mean") if content[name] is not None}
    half = content["half"] and {**content["half"], "steps": plain(np.array(content["half"]["steps"]))}
    return {**content, **{name: plain(np.array(figure)) for name, figure in figures.items()}, "half": half}
