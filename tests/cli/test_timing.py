"""What ``bench``, ``dump --profile`` and ``--chrome-trace`` say of time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from tract_core.cli.commands import profile_report, turns
from tract_core.cli.commands.turns import UNSTEADY, blas_threads, doubt, figures_of

Call = Callable[..., Result]


def test_figures_of_turns() -> None:
    seconds = np.random.default_rng(3).uniform(0.001, 0.0012, 999)
    figures = figures_of(seconds.tolist())
    assert figures["iterations"] == 999
    assert figures["median_ms"] == pytest.approx(np.sort(seconds)[499] * 1e3)
    assert figures["percentiles_ms"]["95"] == pytest.approx(np.quantile(seconds, 0.95) * 1e3)
    assert figures["turns_per_s"] == pytest.approx(999 / seconds.sum())
    assert figures["steady"]
    assert doubt(figures, "reference") is None


@pytest.mark.parametrize(
    "seconds",
    [
        [0.001] * 50 + [0.002] * 50,
        [0.001, 0.002] * 50,
        np.linspace(0.001, 0.002, 100).tolist(),
    ],
)
def test_turns_of_two_kinds_make_the_median_worthless(seconds: Sequence[float]) -> None:
    figures = figures_of(seconds)
    assert figures["spread"] > UNSTEADY
    assert not figures["steady"]
    assert "of the median, which says little" in (doubt(figures, "reference") or "")


def test_a_few_slow_turns_leave_the_median_alone() -> None:
    assert figures_of([0.001] * 95 + [1.0] * 5)["steady"]


def test_few_turns_say_little() -> None:
    assert "after so few turns (1)" in (doubt(figures_of([0.001]), "reference") or "")
    assert figures_of([0.0, 0.0])["turns_per_s"] is None


def test_the_threads_of_matrix_products_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    variable = blas_threads()
    assert variable is not None
    assert f"{variable}=1 keeps NumPy's matrix products" in (doubt(figures_of([1, 9] * 9), "reference") or "")
    assert variable not in (doubt(figures_of([1, 9] * 9), "cpu") or "")
    monkeypatch.setenv(variable, "1")
    assert blas_threads() is None


def test_bench_has_percentiles_and_throughput(tract: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: Any) -> list[float]:
        return [0.001, 0.004] * 10

    monkeypatch.setattr(turns, "seconds_of_turns", measured)
    result = tract(model, "bench", "--set", "B=2")
    assert "2.500 ms a turn (median of 20; mean 2.500, fastest 1.000, slowest 4.000) on cpu" in result.stdout
    assert "75 % 4.000" in result.stdout
    assert "400 turns a second" in result.stdout
    assert "Warning: the turns differ by 120% of the median, which says little" in result.stderr
    figures = json.loads(tract(model, "bench", "--set", "B=2", "--json").stdout)
    assert {"runtime", "iterations", "median_ms", "fastest_ms", "slowest_ms", "mean_ms"} <= figures.keys()
    assert figures["steady"] is False
    assert figures["turns_per_s"] == pytest.approx(400)


def test_a_profile_is_sorted_and_has_shares_and_sums(tract: Call, model: Path) -> None:
    flags = ("dump", "--profile", "--set", "B=2", "--max-loops", "3")
    result = tract(model, *flags)
    assert result.stderr == "measuring on cpu, for up to 5 s (--max-time)\n"
    listing, sums = result.stdout.split("\n\n")[:2]
    shares = [float(line.split()[2]) for line in listing.splitlines()[1:]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert "100.0 %      3  all nodes" in sums
    assert re.search(r"^[\d.]+ ms a turn \(median of 3; mean [\d.]+\) on cpu$", result.stdout, re.MULTILINE)
    assert re.search(r"^[\d.]+ ms step by step \(median of 3; mean [\d.]+\)", result.stdout, re.MULTILINE)


def test_bench_and_profile_mean_the_same_by_mean_and_median(
    tract: Call, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (turns, profile_report):
        monkeypatch.setattr(module, "seconds_of_turns", lambda *_: [0.001, 0.001, 0.004])
    said = "1.000 ms a turn (median of 3; mean 2.000"
    flags = ("--set", "B=2", "--max-loops", "3")
    assert said in tract(model, "bench", *flags).stdout
    assert said in tract(model, "dump", "--profile", *flags).stdout
    figures = json.loads(tract(model, "bench", *flags, "--json").stdout)
    turn = json.loads(tract(model, "dump", "--profile", *flags, "--json").stdout)["profiling_info"]["turn"]
    assert turn == {key: figures[key] for key in turn}


def test_a_profile_as_json(tract: Call, model: Path) -> None:
    flags = ("-r", "reference", "dump")
    content = json.loads(tract(model, *flags, "--profile", "--json", "--set", "B=2", "--max-loops", "20").stdout)
    timed = [node for node in content["nodes"] if node["secs_per_iter"] is not None]
    total = sum(node["secs_per_iter"] for node in timed)
    assert content["profiling_info"]["secs_in_nodes"] == pytest.approx(total)
    assert sum(node["share"] for node in timed) == pytest.approx(1)
    assert sum(one["secs_per_iter"] for one in content["operators"]) == pytest.approx(total)
    assert sum(one["nodes"] for one in content["operators"]) == len(timed)
    ids = [node["qualified_id"][1] for node in content["nodes"]]
    assert ids == [node["qualified_id"][1] for node in json.loads(tract(model, *flags, "--json").stdout)["nodes"]]


@pytest.mark.parametrize("command", ["run", "bench --max-loops 20", "dump", "dump --profile --max-loops 20"])
def test_a_chrome_trace(tract: Call, model: Path, tmp_path: Path, command: str) -> None:
    path = tmp_path / "trace.json"
    result = tract(model, "-r", "reference", *command.split(), "-R", "--set", "B=2", "--chrome-trace", path)
    assert result.exit_code == 0, result.output
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in spans] == ["product", "sum", "y"]
    assert all(event["dur"] > 0 and event["ts"] >= 0 and isinstance(event["pid"], int) for event in spans)
    for one, following in pairwise(spans):
        assert one["ts"] + one["dur"] <= following["ts"] + 1e-3
