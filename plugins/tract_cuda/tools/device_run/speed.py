"""How long networks take, for one row and for many, beside other engines, whose outputs are compared too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from device_run import networks
from device_run.peers import ENGINES, SLOW, Load, Run, as_arrays
from device_run.setting import Setting

_RUNS, _BEFORE = 30, 5
"""Runs whose median counts, and runs before."""

_LEAST_SECONDS = 15

SEPARATOR = " | "
"""Between the network, the batch, the precision and the engine in the name of a row."""


def run(setting: Setting) -> None:
    """A row for each network, batch, precision and engine; last, engines that take minutes to compile each."""
    if setting.small:
        engines, later = [name for name in ENGINES if name.startswith("cuda")], list[str]()
        setting.attempt("other engines", lambda: {"left out": "a small run has no peers"})
    else:
        engines, later = [name for name in ENGINES if name not in SLOW], list(SLOW)
    for some in (engines, later):
        for name, batch, precision in _of_interest(setting):
            for engine in some:
                if setting.left < _LEAST_SECONDS and not setting.small:
                    return
                what = SEPARATOR.join((name, str(batch), precision, engine))
                setting.attempt(what, partial(_row, setting, ENGINES[engine], name, batch, precision))


def _of_interest(setting: Setting) -> Iterator[tuple[str, int, str]]:
    """Networks, batches and precisions: all networks for one row in f32 first."""
    for precision in ("f32",) if setting.small else ("f32", "f16", "tf32"):
        for batch in (1, 2) if setting.small else (1, 32):
            for name in networks.names(setting):
                one_row = batch > 1 and name in networks.ONE_ROW
                if not one_row and ("int8" not in name or precision == "f32"):
                    yield name, batch, precision


def _row(setting: Setting, load: Load, name: str, batch: int, precision: str) -> dict[str, Any]:
    _ = setting.device
    _, right = networks.wanted(name, setting.small, batch)
    begin = perf_counter()
    try:
        turn = load(networks.network(name, setting.small, batch), precision)
        found = as_arrays(turn())
    except (ImportError, NotImplementedError) as error:
        return {"left out": str(error)}
    ready = perf_counter() - begin
    seconds = setting.timed(lambda: measured(turn, 1 if setting.small else _RUNS))
    times = {"not measured": "virtual"} if seconds is None else {"ms": seconds * 1e3, "s until ready": ready}
    return times | {"difference": networks.difference(found, right)}


def measured(turn: Run, runs: int) -> float:
    """The median time of one run, in seconds."""
    for _ in range(min(_BEFORE, runs)):
        turn()
    times: list[float] = []
    for _ in range(runs):
        begin = perf_counter()
        turn()
        times.append(perf_counter() - begin)
    return median(times)
