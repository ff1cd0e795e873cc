"""Tables of what was measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from engines import ENGINES

Found = dict[str, Any]
"""What engines said of one workload, by name of engine."""

NARROW = (" bf16", " int8")
"""How the names end of networks that are other ones in narrower numbers."""

STREAMS = "streams"
"""The folder, beside the other measurements, of those of pulses."""

INFERERS = "inferers"
"""The folder, likewise, of those of policies for many agents."""

CACHES = 32 << 20
"""Bytes of weights that stay in the caches from one run to the next."""

SMALL_SHARE = 0.01
"""Kernels below this share of the time are not listed."""

INTRODUCTION = """\
# How fast it is

Written by `make bench`, which measures this project beside other engines, all from their wheels and through their
Python packages, on the networks of `bench/workloads.py`: f32, one input at a time, random weights. Every engine runs in
a process of its own. They take turns, in short rounds; a time is the median of the rounds' medians, a ratio the median
of the rounds' ratios: above 1 means that this project is the faster one. Times include the call from Python.
Where a machine does other things meanwhile, times grow, for all alike: trust the ratios.
"""


def times(found: Found, name: str) -> list[float]:
    return found.get(name, {}).get("rounds", [])


def ratio(found: Found, name: str) -> float | None:
    """The time of an engine divided by ours, the median over the rounds."""
    pairs = list(zip(times(found, name), times(found, "ours"), strict=False))
    return median(other / ours for other, ours in pairs) if pairs else None


def fastest_ratio(found: Found) -> float | None:
    """The time of whichever peer is the fastest, divided by ours."""
    ratios = [one for name in ENGINES if name != "ours" and (one := ratio(found, name)) is not None]
    return min(ratios, default=None)


def mean(ratios: list[float | None]) -> str:
    """The geometric mean, as text."""
    known = [one for one in ratios if one is not None]
    return f"{exp(sum(map(log, known)) / len(known)):.2f}" if known else ""


def line(workload: str, threads: int, found: Found) -> str:
    """One line for the terminal: a time for each engine, with the ratio to ours."""
    parts = [f"{workload + f' ({threads})':<24}"]
    for name, one in found.items():
        if "failed" in one:
            parts.append(f"{name}: {one['failed'][:60]}")
        else:
            beside = "" if name == "ours" or (found_ratio := ratio(found, name)) is None else f" ({found_ratio:.2f})"
            parts.append(f"{name} {milliseconds(median(one['rounds']))} ms{beside}")
    return "  ".join(parts)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def write(path: Path, readme: Path, measured: Path, workloads: list[str], machine: dict[str, str]) -> None:
    """The tables of all that there is in the folder ``measured``, in the order of ``workloads``.

    ``readme``: a page that shows some of the rows for one thread, which is kept in step.
    """
    files = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(measured.glob("*.json"))}
    counts = sorted({int(stem.rpartition("-")[2]) for stem in files})
    kept = {
        threads: {name: files[f"{name}-{threads}"]["engines"] for name in workloads if f"{name}-{threads}" in files}
        for threads in counts
    }
    dates = sorted({one["date"] for one in files.values()})
    parts = [INTRODUCTION, _machine(machine, kept, dates)]
    parts += [_times(threads, kept[threads]) for threads in counts]
    parts += [_narrow(kept), _bounds(kept.get(1, {})), _streams(measured / STREAMS), _agents(measured / INFERERS)]
    parts += [_scaling(kept), _costs(kept), _hosted(kept), _missing(kept)]
    path.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    if 1 in kept:
        readme.write_text(refreshed(readme.read_text(encoding="utf-8"), _times(1, kept[1])), encoding="utf-8")


def refreshed(page: str, table: str) -> str:
    """A page with the rows of a table in place of those that begin alike."""
    rows = {line.split("|")[1]: line for line in table.splitlines() if line.startswith("| ")}
    return "\n".join(rows.get(line.split("|")[1], line) if line.startswith("| ") else line for line in page.split("\n"))


def _machine(machine: dict[str, str], kept: dict[int, dict[str, Found]], dates: list[str]) -> str:
    versions = {
        name: one["version"]
        for founds in kept.values()
        for found in founds.values()
        for name, one in found.items()
        if "version" in one and name != "ours"
    }
    rows = {**machine, "engines": ", ".join(f"{name} {text}" for name, text in versions.items())}
    rows["measured"] = " to ".join(sorted({dates[0], dates[-1]})) if dates else "never"
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items()), ""])


def _times(threads: int, founds: dict[str, Found]) -> str:
    peers = [name for name in ENGINES if name != "ours"]
    lines = [
        f"## {threads} thread{'s'[: threads - 1]}",
        "",
        f"| milliseconds | {' | '.join(ENGINES)} | fastest peer / ours | tract / ours |",
        f"|---|{'---|' * (len(ENGINES) + 2)}",
    ]
    for workload, found in founds.items():
        cells = [_cell(found, name) for name in ENGINES]
        ratios = [fastest_ratio(found), ratio(found, "tract")]
        lines.append(_row(workload, [*cells, *("" if one is None else f"{one:.2f}" for one in ratios)]))
    means = ["", *(mean([ratio(found, name) for found in founds.values()]) for name in peers)]
    means += [mean([fastest_ratio(found) for found in founds.values()]), means[1 + peers.index("tract")]]
    lines += [_row("geometric mean of their time / ours", means), ""]
    return "\n".join(lines)


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _cell(found: Found, name: str) -> str:
    return milliseconds(median(times(found, name))) if times(found, name) else "-"


def _narrow(kept: dict[int, dict[str, Found]]) -> str:
    """What narrower numbers gain: networks whose name is that of another one and a type."""
    rows: list[str] = []
    for threads, founds in kept.items():
        ours = {name: found["ours"] for name, found in founds.items() if found.get("ours", {}).get("ceilings")}
        pairs = [(name, name.rpartition(" ")[0]) for name in ours if name.endswith(NARROW)]
        for name, wide in ((name, wide) for name, wide in pairs if wide in ours):
            rows.append(_row(f"{name} ({threads})", [f"{_cycles(ours[wide]) / _cycles(ours[name]):.2f}"]))
    lines = [
        "## Narrower numbers",
        "",
        "How many times faster this project runs a network than the same one in f32. As the two are measured one after",
        "the other, each time counts in multiply-adds that the machine could do at that moment.",
        "",
        "| | ours, f32 / narrow |",
        "|---|---|",
        *rows,
    ]
    return "\n".join([*lines, ""]) if rows else ""


def _cycles(ours: dict[str, Any]) -> float:
    """A time, in operations that the machine could do meanwhile."""
    return median(time * rate for time, (rate, _) in zip(ours["rounds"], ours["ceilings"], strict=False))


def _bounds(founds: dict[str, Found]) -> str:
    """How far our times are from what the machine allows. ``founds``: with one thread."""
    lines = [
        "## What bounds it",
        "",
        "On one thread: how much a network computes, a multiply-add being two operations; what its file weighs; the",
        "least time that its operations take if all are done as written (Winograd's convolutions do with fewer); the",
        "least time to read its weights from memory, where caches cannot hold them; which share of our time the larger",
        "of both is; and the kernels that our time goes to. The ceilings are measured in the same rounds as the times.",
        "In small networks, the way from kernel to kernel counts too much in the last column.",
        "",
        "| | GFLOP | MB | operations, ms | weights, ms | ours, ms | of the ceiling | kernels |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(name, cells) for name, found in founds.items() if (cells := _bound(found.get("ours", {})))),
    ]
    return "\n".join([*lines, ""])


def _bound(ours: dict[str, Any]) -> list[str]:
    if not ours.get("ceilings") or "operations" not in ours:
        return []
    size = ours["weights"] if ours["weights"] > CACHES else 0
    least = [(ours["operations"] / rate, size / bandwidth) for rate, bandwidth in ours["ceilings"]]
    share = median(max(both) / time for both, time in zip(least, ours["rounds"], strict=False))
    kernels = ", ".join(f"{kind} {part:.0%}" for kind, part in ours["kernels"].items() if part >= SMALL_SHARE)
    computing, reading = (median(one) for one in zip(*least, strict=True))
    return [
        f"{ours['operations'] / 1e9:.3g}",
        f"{ours['weights'] / 1e6:.3g}",
        milliseconds(computing),
        milliseconds(reading) if size else "",
        milliseconds(median(ours["rounds"])),
        f"{share:.0%}",
        kernels,
    ]


def _streams(folder: Path) -> str:
    """Networks that take a signal in pulses, as `bench_pulse.py` found them."""
    files = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    lines = [
        "## Streams",
        "",
        "Networks that take their signal in pulses, on one thread, beside the engine that can do so too.",
        "",
        "| | µs per pulse, ours | tract / ours |",
        "|---|---|---|",
        *(_row(one["name"], [f"{one['microseconds']:.3g}", f"{one['ratio']:.2f}"]) for one in files),
    ]
    return "\n".join([*lines, ""]) if files else ""


def _agents(folder: Path) -> str:
    """A policy for many agents, as `bench_inferers.py` found it."""
    found = [one for file in sorted(folder.glob("*.json")) for one in json.loads(file.read_text(encoding="utf-8"))]
    columns: dict[str, Callable[[Found], str]] = {
        "bare run, µs": lambda one: f"{one['bare']:.3g}",
        "whole arrays add, µs": lambda one: f"{one['arrays add']:.2g}",
        "dictionaries add, µs per agent": lambda one: f"{one['dictionaries add per agent']:.2g}",
        "onnxruntime / arrays": lambda one: f"{one['onnxruntime / arrays']:.2f}",
        "onnxruntime, stacked / dictionaries": lambda one: f"{one['stacked / dictionaries']:.2f}",
        "onnxruntime, per agent / arrays": lambda one: f"{one['per agent / arrays']:.1f}",
        "onnxruntime, per agent / dictionaries": lambda one: f"{one['per agent / dictionaries']:.1f}",
    }
    lines = [
        "## Policies for many agents",
        "",
        "A policy of 64-256-256-8 through `tract-inferers`, on one thread: what a step of all agents takes as bare",
        "`Runnable.run` on rows that lie side by side, and what the two ways to ask add to it. Then ONNX Runtime: with",
        "the same rows; with rows that are stacked by hand from one observation per agent; and called once per agent.",
        "",
        f"| agents | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
        *(_row(str(one["agents"]), [text(one) for text in columns.values()]) for one in found),
    ]
    return "\n".join([*lines, ""]) if found else ""


def _scaling(kept: dict[int, dict[str, Found]]) -> str:
    if not {1, 2} <= set(kept):
        return ""
    names = [name for name in ENGINES if name != "tract"]
    lines = [
        "## Two threads instead of one",
        "",
        "How many times faster each engine is.",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for workload in kept[1].keys() & kept[2].keys():
        one, two = kept[1][workload], kept[2][workload]
        both = [(times(one, name), times(two, name)) for name in names]
        lines.append(_row(workload, [f"{median(a) / median(b):.2f}" if a and b else "-" for a, b in both]))
    return "\n".join([*lines[:6], *sorted(lines[6:], key=lambda row: list(kept[1]).index(row[2:].split(" |")[0])), ""])


def _costs(kept: dict[int, dict[str, Found]]) -> str:
    """What is paid beside time, at the smallest number of threads."""
    if not kept:
        return ""
    founds = kept[min(kept)]
    parts = [
        _table(
            "Loading and preparing",
            "Seconds from the file to a model that is ready: the first time on a machine, and again with what an\n"
            "engine keeps on disk (ours: object code; OpenVINO: compiled models; MNN: the converted file).",
            founds,
            lambda one: f"{one['cold']:.2f} / {one['load']:.2f}",
        ),
        _table("Memory", "Megabytes at most, in a process that loads and runs the model.", founds, _megabytes),
        _table(
            "Differences",
            "The largest difference from the same network in float64, as the interpreter of the package `onnx`\n"
            "computes it, relative to the largest number of the output.",
            founds,
            lambda one: f"{one['error']:.0e}",
        ),
    ]
    return "\n".join(parts)


def _megabytes(one: dict[str, Any]) -> str:
    return f"{one['megabytes']:.0f}"


def _table(title: str, about: str, founds: dict[str, Found], cell: Callable[[dict[str, Any]], str]) -> str:
    lines = [f"## {title}", "", about, "", f"| | {' | '.join(ENGINES)} |", f"|---|{'---|' * len(ENGINES)}"]
    for workload, found in founds.items():
        cells = ["-" if "failed" in found.get(name, {"failed": ""}) else cell(found[name]) for name in ENGINES]
        lines.append(_row(workload, cells))
    return "\n".join([*lines, ""])


def _hosted(kept: dict[int, dict[str, Found]]) -> str:
    """Operators of ours that have no native code."""
    hosted = {
        workload: one["hosted"]
        for founds in kept.values()
        for workload, found in founds.items()
        if (one := found.get("ours", {})).get("hosted")
    }
    lines = [f"- {workload}: {', '.join(names)}" for workload, names in hosted.items()]
    return "\n".join(["## Operators of ours that have no native code yet", "", *lines, ""]) if lines else ""


def _missing(kept: dict[int, dict[str, Found]]) -> str:
    reasons: dict[str, list[str]] = {}
    for threads, founds in kept.items():
        for workload, found in founds.items():
            for name, one in found.items():
                if "failed" in one:
                    reasons.setdefault(f"{name}: {_short(one['failed'])}", []).append(f"{workload} ({threads})")
    if not reasons:
        return ""
    lines = [f"- {reason}: {', '.join(where)}" for reason, where in reasons.items()]
    return "\n".join(["## What could not be measured", "", *lines, ""])


def _short(reason: str, limit: int = 200) -> str:
    flat = " ".join(reason.split())
    return flat if len(flat) <= limit else f"{flat[:limit]}..."
