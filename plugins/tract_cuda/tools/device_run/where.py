"""Where the time of networks goes: by kernel, by the clock of the device, beside what the device can do at most."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from device_run import networks
from device_run.setting import Setting

_MOST_ROWS = 12
"""Kernels of a network that are told, those that take the longest first."""


def run(setting: Setting) -> None:
    """Rows for each network and precision, one for each kind of kernel."""
    for name in networks.names(setting):
        for precision in ("f32",) if setting.small or "int8" in name else ("f32", "f16"):
            setting.attempt(f"{name} {precision}", partial(_row, setting, name, precision))


def _row(setting: Setting, name: str, precision: str) -> dict[str, Any]:
    _ = setting.device
    runnable, given = networks.prepared(networks.network(name, setting.small), "cuda", precision)
    found = json.loads(runnable.profile_json(given))
    kinds = {
        one.part.nodes[0]: one.why for one in runnable.explain().placements if not one.part.body and one.part.nodes
    }
    parts: dict[str, dict[str, float]] = {}
    for node, seconds, operations, moved in _timed(found):
        part = parts.setdefault(kinds.get(node, "?"), {"groups": 0, "us": 0.0, "operations": 0, "bytes": 0})
        part["groups"] += 1
        part["us"] += seconds * 1e6
        part["operations"] += operations
        part["bytes"] += moved
    if setting.virtual:
        return {"kinds of kernels": len(parts), "not measured": "virtual"}
    return {"us": sum(part["us"] for part in parts.values()), "kernels": _shares(setting, parts)}


def _timed(found: dict[str, Any]) -> Iterator[tuple[int, float, int, int]]:
    """For each group: its first node, its seconds, its operations, and the bytes that it reads and writes."""
    single = [(entry, [entry["qualified_id"]]) for entry in found["nodes"] if "group" not in entry]
    for entry, ways in [*single, *((entry, entry["qualified_ids"]) for entry in found["groups"])]:
        nodes = [node for way, node in ways if not way]
        if nodes and entry.get("secs_per_iter") is not None:
            yield nodes[0], entry["secs_per_iter"], entry.get("operations") or 0, entry.get("bytes") or 0


def _shares(setting: Setting, parts: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """By kind of kernel, with the share of the ceilings that it reaches, where these were measured."""
    most = _ceilings(setting)
    rows: list[dict[str, Any]] = []
    for kind, part in sorted(parts.items(), key=lambda one: -one[1]["us"])[:_MOST_ROWS]:
        seconds, row = part["us"] / 1e6, {"kernel": kind, **part}
        if seconds and most.get("GB/s"):
            row["share of memory"] = part["bytes"] / 1e9 / seconds / most["GB/s"]
        if seconds and most.get("TFLOP/s"):
            row["share of f32"] = part["operations"] / 1e12 / seconds / most["TFLOP/s"]
        rows.append(row)
    return rows


def _ceilings(setting: Setting) -> dict[str, float]:
    """Those of the memory, and of f32 without tensor cores, out of the part `ceilings`."""
    file = setting.folder / "ceilings.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else {}
    return {**rows.get("memory bandwidth", {}), **rows.get("f32", {})}
