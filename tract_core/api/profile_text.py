"""A profile as users hold it: JSON, which notebooks show as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

SHOWN: Final = 20
"""Nodes and groups that are listed: those that take the most time, or cost the most."""


class ProfileText(str):
    """The JSON of a profile, a text like any other. `tract_core.Runnable.profile_json` says what is in it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape

        found: Mapping[str, Any] = json.loads(self)
        info = found["profiling_info"]
        if info is None:
            costs = [(one["node_name"], one["op_name"], _cost(one)) for one in found["nodes"] if one["cost"]]
            return _table(f"<b>Profile</b> of {len(found['nodes'])} nodes, not run", costs)
        timed = sorted(_timed(found), key=lambda one: -one["secs_per_iter"])
        total = sum(one["secs_per_iter"] for one in timed if not _is_in_a_body(one)) or 1.0
        rows = [(_names(one), _ops(one), _time(one["secs_per_iter"], total)) for one in timed]
        turn = f"{info['median_secs_per_iter'] * 1e3:.3f} ms a turn (median of {info['iterations']})"
        return _table(f"<b>Profile</b>: {escape(turn)}", rows)


def _timed(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The nodes, and the groups of nodes, of which the time is known."""
    yield from (one for one in found["nodes"] if one["secs_per_iter"] is not None)
    yield from found["groups"]


def _is_in_a_body(one: Mapping[str, Any]) -> bool:
    ids = one.get("qualified_ids") or [one["qualified_id"]]
    return bool(ids[0][0])


def _names(one: Mapping[str, Any]) -> str:
    return ", ".join(one.get("node_names") or [one["node_name"]])


def _ops(one: Mapping[str, Any]) -> str:
    return ", ".join(one.get("op_names") or [one["op_name"]])


def _cost(one: Mapping[str, Any]) -> str:
    return ", ".join(f"{kind}={count}" for kind, count in one["cost"].items())


def _time(seconds: float, total: float) -> str:
    return f"{seconds * 1e3:.3f} ms, {100 * seconds / total:.1f} %"


def _table(title: str, rows: Sequence[tuple[str, str, str]]) -> str:
    from html import escape

    lines = [
        f"<tr><td>{escape(text)}</td><td>{escape(ops)}</td><td>{escape(names)}</td></tr>"
        for names, ops, text in rows[:SHOWN]
    ]
    more = f"<p>and {len(rows) - SHOWN} more</p>" if len(rows) > SHOWN else ""
    return f"{title}<table>{''.join(lines)}</table>{more}"
