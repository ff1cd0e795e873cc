"""The work of ``dump --profile``: measure, then list the nodes by the time they take, and sums by operator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from tract_core.cli.commands.turns import figures_of, not_made_for_speed, seconds_of_turns, warm_up
from tract_core.cli.inputs import inputs_for
from tract_core.cli.printing.printed import Column, PrintedTable
from tract_core.cli.warn import tell
from tract_core.runtime.parts import Part, body_at
from tract_core.runtime.profile import chrome_trace, profile
from tract_core.runtime.protocol import MeasuringPlan
from tract_core.runtime.work import Ceilings, Work
from tract_core.saving import whole_file

if TYPE_CHECKING:
    from tract_core.cli.printing.render import Show
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel

WHOLE: Final = 0.2
"""Which part of the time of a profile goes to whole turns, as ``bench`` measures them."""

_RATES: Final = ("GFLOP/s", "GB/s", "of peak")

Array = np.ndarray[Any, Any]
Flags = Mapping[str, Any]


def measured(request: Request, model: TypedModel, flags: Flags) -> dict[str, Any]:
    """Costs, and with ``--profile`` timings, as `tract_core.Runnable.profile_json` has them, with shares and sums.

    ``turn``: the figures of whole turns, as ``bench`` has them. ``share``: of the time that all nodes take together.
    ``operators``: the sums, the slowest first, where the time of a node that runs bodies is what it takes without them.
    Where the runtime can measure what the machine can do at most, ``of_ceiling`` is the share of it that a node or a
    group reaches.
    """
    plan = request.prepare(model)
    arrays = inputs_for(request, model, {**flags, "random": True}) if flags["profile"] else None
    if arrays is not None and not flags["as_json"]:
        runtime = request.chosen_runtime.name
        click.echo(f"measuring on {runtime}, for up to {flags['max_time'] / 1e3:g} s (--max-time)", err=True)
    with request.progress("profiling"):
        if arrays is not None:
            warm_up(plan.spawn(), arrays, flags["warmup_time"], flags["warmup_loops"])
        limit, loops = flags["max_time"] / 1e3, flags["max_loops"]
        limits = {"max_seconds": limit * (1 - WHOLE), "max_turns": loops}
        before = plan.ceilings() if arrays is not None and isinstance(plan, MeasuringPlan) else None
        timed = json.loads(profile(model, plan, arrays, **limits))
        if before is not None and isinstance(plan, MeasuringPlan):
            _compare(timed, before.or_better(plan.ceilings()))
        if arrays is not None:
            timed["profiling_info"]["turn"] = figures_of(seconds_of_turns(plan.spawn(), arrays, limit * WHOLE, loops))
    return timed if arrays is None else _with_sums(timed)


def _compare(timed: dict[str, Any], ceilings: Ceilings) -> None:
    """Say of what has a time how near it comes to what the machine can do."""
    timed["profiling_info"]["ceilings"] = {
        "gflop_per_s": ceilings.operations_per_s / 1e9,
        "gb_per_s": ceilings.bytes_per_s / 1e9,
    }
    for entry in _entries(timed):
        if entry["operations"] is not None:
            work = Work(entry["operations"], entry["bytes"])
            entry["of_ceiling"] = ceilings.share_of(work, entry["secs_per_iter"])


def _with_sums(timed: dict[str, Any]) -> dict[str, Any]:
    entries = _entries(timed)
    total = sum(entry["secs_per_iter"] for entry in entries if not _way_to(entry))
    operators: dict[str, dict[str, Any]] = {}
    for entry in entries:
        entry["share"] = entry["secs_per_iter"] / total if total else 0.0
        names = entry.get("op_names") or [entry["op_name"]]
        kind = ", ".join(names)
        of_kind = operators.setdefault(kind, {"op_name": kind, "nodes": 0, "secs_per_iter": 0.0, "share": 0.0})
        own = entry["secs_per_iter"] - _in_bodies(entry, entries)
        of_kind["nodes"] += len(names)
        of_kind["secs_per_iter"] += own
        of_kind["share"] += own / total if total else 0.0
    timed["profiling_info"]["secs_in_nodes"] = total
    timed["operators"] = sorted(operators.values(), key=lambda one: -one["secs_per_iter"])
    return timed


def _entries(timed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The nodes, and the groups of nodes, of which the time is known."""
    return [node for node in timed["nodes"] if node["secs_per_iter"] is not None] + list(timed["groups"])


def _ids_of(entry: Mapping[str, Any]) -> list[list[Any]]:
    """The qualified ids of a node, or of those of a group."""
    return entry["qualified_ids"] if "qualified_ids" in entry else [entry["qualified_id"]]


def _way_to(entry: Mapping[str, Any]) -> list[list[int]]:
    """The way to the body that an entry is in."""
    return _ids_of(entry)[0][0]


def _in_bodies(entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> float:
    """How much of the time of an entry the nodes of its bodies take."""
    around, ids = _way_to(entry), {node for _, node in _ids_of(entry)}
    ways = ((_way_to(one), one["secs_per_iter"]) for one in entries)
    return sum(seconds for way, seconds in ways if way and way[:-1] == around and way[-1][0] in ids)


def write_trace(request: Request, model: TypedModel, flags: Flags, arrays: Sequence[Array]) -> None:
    """With ``--chrome-trace``, one more turn as a file for chrome://tracing or Perfetto.

    Raises Unsupported where the runtime does not time single nodes.
    """
    if flags["trace"] is None:
        return
    with request.progress("tracing"):
        content = chrome_trace(model, request.prepare(model), arrays)
    with whole_file(flags["trace"]) as file:
        file.write(content.encode())


def print_profile(request: Request, model: TypedModel, timed: Mapping[str, Any], show: Show) -> None:
    """The time of a turn, nodes by the time they take, and sums by operator. ``model``: the one that runs."""
    console = request.console
    info, operators = timed["profiling_info"], timed["operators"]
    runtime = request.chosen_runtime.name
    turn = info["turn"]
    figures = f"median of {turn['iterations']}; mean {turn['mean_ms']:.3f}"
    whole = f"{turn['median_ms']:.3f} ms a turn ({figures}) on {runtime}"
    warning = not_made_for_speed(runtime)
    if warning is not None:
        tell(warning)
    if not operators:
        console.line(f"{whole}, which does not time single nodes")
        return
    console.table(_node_table(model, timed, show))
    console.line()
    console.table(_sums(timed))
    console.line(f"\n{whole}")
    figures = f"median of {info['iterations']}; mean {info['secs_per_iter'] * 1e3:.3f}"
    console.line(f"{_time(info['median_secs_per_iter'])} step by step ({figures}), as nodes are timed: by means")
    if "ceilings" in info:
        peak = info["ceilings"]
        console.line(f"this machine: {peak['gflop_per_s']:.0f} GFLOP/s, {peak['gb_per_s']:.1f} GB/s from memory")


def _node_table(model: TypedModel, timed: Mapping[str, Any], show: Show) -> PrintedTable:
    columns = show.columns or {}
    table = _table("id", *_RATES, titles=("operator", "name", "facts", *columns))
    for entry in sorted(_entries(timed), key=lambda entry: -entry["secs_per_iter"]):
        part = Part(tuple(node for _, node in _ids_of(entry)), tuple((node, number) for node, number in _way_to(entry)))
        outermost = part.body[0][:1] if part.body else part.nodes
        if show.only is None or not show.only.isdisjoint(outermost):
            graph = body_at(model, part.body)
            facts = "\n".join(str(graph.outlet_fact(outlet)) for outlet in part.results(model))
            shown = (", ".join(part.ops(model)), ", ".join(part.names(model)), facts)
            more = (
                "\n".join(filter(None, (cells.get((part.body, node)) for node in part.nodes)))
                for cells in columns.values()
            )
            rates = _rates(entry)
            table.add(*_timing(entry), _id_text(part), *rates, (shown[0], "green"), *shown[1:], *more)
    return table


def _id_text(part: Part) -> str:
    """As ``5``, ``5+6`` for a group, and ``5/2`` for node 2 of a body of node 5."""
    return "".join(f"{node}/" for node, _ in part.body) + "+".join(map(str, part.nodes))


def _sums(timed: Mapping[str, Any]) -> PrintedTable:
    table = _table("nodes", titles=("operator",))
    for entry in timed["operators"]:
        table.add(*_timing(entry), str(entry["nodes"]), (entry["op_name"], "green"))
    count = sum(entry["nodes"] for entry in timed["operators"])
    table.add(_time(timed["profiling_info"]["secs_in_nodes"]), "100.0 %", str(count), "all nodes")
    return table


def _rates(entry: Mapping[str, Any]) -> list[str]:
    """Operations and bytes a second, and the share of what is possible; empty where nobody knows."""
    shown = [f"{entry[key]:.1f}" if entry.get(key) else "" for key in ("gflop_per_s", "gb_per_s")]
    return [*shown, f"{entry['of_ceiling']:.0%}".replace("%", " %") if "of_ceiling" in entry else ""]


def _table(*numbers: str, titles: Sequence[str]) -> PrintedTable:
    figures = (Column(title, right=True, whole=True) for title in ("time", "share", *numbers))
    return PrintedTable((*figures, *map(Column, titles)))


def _timing(entry: Mapping[str, Any]) -> tuple[str, str]:
    return _time(entry["secs_per_iter"]), f"{entry['share']:.1%}".replace("%", " %")


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"
