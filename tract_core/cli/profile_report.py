"""The work of ``dump --profile``: measure, then list the nodes by the time they take, and sums by operator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.table import Table
from rich.text import Text

from tract_core.cli.console import print_table
from tract_core.cli.inputs import inputs_for
from tract_core.cli.turns import warm_up
from tract_core.runtime.profile import chrome_trace, profile
from tract_core.saving import whole_file

if TYPE_CHECKING:
    from tract_core.cli.render import Show
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel

Array = np.ndarray[Any, Any]
Flags = Mapping[str, Any]


def measured(request: Request, model: TypedModel, flags: Flags) -> dict[str, Any]:
    """Costs, and with ``--profile`` timings, as `tract_core.Runnable.profile_json` has them, with shares and sums.

    ``share``: of the time that all nodes take together. ``operators``: the sums, the slowest first.
    """
    plan = request.prepare(model)
    arrays = inputs_for(request, model, {**flags, "random": True}) if flags["profile"] else None
    if arrays is not None and not flags["as_json"]:
        runtime = request.chosen_runtime.name
        click.echo(f"measuring on {runtime}, for up to {flags['max_time'] / 1e3:g} s (--max-time)", err=True)
    with request.progress("profiling"):
        if arrays is not None:
            warm_up(plan.spawn(), arrays, flags["warmup_time"], flags["warmup_loops"])
        limits = {"max_seconds": flags["max_time"] / 1e3, "max_turns": flags["max_loops"]}
        timed = json.loads(profile(model, plan, arrays, **limits))
    return timed if arrays is None else _with_sums(timed)


def _with_sums(timed: dict[str, Any]) -> dict[str, Any]:
    nodes = [node for node in timed["nodes"] if node["secs_per_iter"] is not None]
    total = sum(node["secs_per_iter"] for node in nodes)
    operators: dict[str, dict[str, Any]] = {}
    for node in nodes:
        node["share"] = node["secs_per_iter"] / total if total else 0.0
        empty = {"op_name": node["op_name"], "nodes": 0, "secs_per_iter": 0.0, "share": 0.0}
        of_kind = operators.setdefault(node["op_name"], empty)
        of_kind["nodes"] += 1
        of_kind["secs_per_iter"] += node["secs_per_iter"]
        of_kind["share"] += node["share"]
    timed["profiling_info"]["secs_in_nodes"] = total
    timed["operators"] = sorted(operators.values(), key=lambda one: -one["secs_per_iter"])
    return timed


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
    """The time of a turn, nodes by the time they take, and sums by operator."""
    console = request.console
    info, operators = timed["profiling_info"], timed["operators"]
    turns = f"mean of {info['iterations']} turn{'s' if info['iterations'] > 1 else ''}"
    runtime = request.chosen_runtime.name
    if not operators:
        console.print(f"{_time(info['secs_per_iter'])} a turn on {runtime} ({turns}), which does not time single nodes")
        return
    print_table(console, _node_table(model, timed, show))
    console.print()
    print_table(console, _sums(timed))
    console.print(f"\n{_time(info['secs_per_iter'])} a turn on {runtime} ({turns})")


def _node_table(model: TypedModel, timed: Mapping[str, Any], show: Show) -> Table:
    columns = show.columns or {}
    table = _table("id", *("operator", "name", "facts"), *columns)
    nodes = [node for node in timed["nodes"] if node["secs_per_iter"] is not None]
    for entry in sorted(nodes, key=lambda node: -node["secs_per_iter"]):
        number: int = entry["qualified_id"][1]
        node = model.nodes[number]
        if show.only is None or node.id in show.only:
            facts = "\n".join(str(output.fact) for output in node.outputs)
            cells = (str(node.id), Text(node.op.name, style="green"), Text(node.name), Text(facts))
            table.add_row(*_timing(entry), *cells, *(Text(column.get(node.id, "")) for column in columns.values()))
    return table


def _sums(timed: Mapping[str, Any]) -> Table:
    table = _table("nodes", "operator")
    for entry in timed["operators"]:
        table.add_row(*_timing(entry), str(entry["nodes"]), Text(entry["op_name"], style="green"))
    count = sum(entry["nodes"] for entry in timed["operators"])
    table.add_row(_time(timed["profiling_info"]["secs_in_nodes"]), "100.0 %", str(count), "all nodes")
    return table


def _table(number: str, *titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("time", "share", number):
        table.add_column(title, justify="right", no_wrap=True)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _timing(entry: Mapping[str, Any]) -> tuple[str, str]:
    return _time(entry["secs_per_iter"]), f"{entry['share']:.1%}".replace("%", " %")


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"
