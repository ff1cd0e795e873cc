"""The benchmark of networks: they come out right on the compiling runtime, and what is wrong is said. No times."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import bounds
import engines
import numpy as np
import peers
import pytest
import report
import workloads
from workloads import WORKLOADS

import tract_core as tract

BENCH = Path(peers.__file__).parent
TESTS = [BENCH.parent / "tests" / "shipped", BENCH.parent / "plugins" / "tract_ray" / "tests"]
"""Of whose modules scripts import some."""
ELSEWHERE = {"MNN", "_tools", "ai_edge_litert", "ray", "tensorflow", "torch", "tract", "tract_torch"}
"""What peers bring, and what is not installed for tests."""


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_networks_come_out_right(workload, threads: int, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(models))
    files = workload.files(models, small=True)
    answer, loaded = engines.begin(["ours", *map(str, files), str(threads), str(models), workload.precision])
    assert not peers.wrong({"ours": answer}, workload)
    assert engines.worst_error(loaded.run(), loaded.run()) == 0


def test_models_are_the_same_each_time(tmp_path: Path) -> None:
    one, other = (WORKLOADS[-3].files(tmp_path / name, small=True)[0].read_bytes() for name in "ab")
    assert one == other


def test_the_script_runs_and_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, BENCH / "peers.py", "--short", "--only", "policy", "--engines", "ours", "onnxruntime"]
    printed = subprocess.check_output(command, text=True)
    assert [line.split("  ")[0] for line in printed.splitlines()] == [
        "policy, 1 row (1)",
        "policy, 32 rows (1)",
        "policy, 1024 rows (1)",
    ]
    refused = subprocess.run([*command[:-1], "nothing"], capture_output=True, text=True, check=False)
    assert "invalid choice: 'nothing'" in refused.stderr


def test_an_unknown_workload_is_refused() -> None:
    with pytest.raises(SystemExit, match="no workload has nothing in its name; there are MobileNetV2, ResNet-50"):
        peers.chosen(["nothing"])


def test_wrong_results_are_named() -> None:
    wanted = [np.array([1.0, 2.0])]
    off = engines.worst_error([np.array([1.0, 2.001])], wanted)
    assert off == pytest.approx(5e-4)
    assert engines.worst_error([np.array([1.0, np.nan])], wanted) == np.inf
    with pytest.raises(ValueError, match=r"the outputs have the shapes \[\(3,\)\], wanted \[\(2,\)\]"):
        engines.worst_error([np.zeros(3)], wanted)
    (exact,), (rounds,) = peers.chosen(["MobileNetV2"]), peers.chosen(["ResNet-50 int8"])
    assert peers.wrong({"onnxruntime": {"error": off}}, exact) == []
    assert peers.wrong({"ours": {"error": off}}, exact) == ["ours is off by 5.0e-04"]
    assert peers.wrong({"ours": {"error": off}}, rounds) == []
    assert peers.wrong({"mnn": {"error": np.inf}, "ours": {"failed": "no reason"}}, exact) == [
        "mnn is off by inf",
        "ours: no reason",
    ]


def test_a_peer_with_wrong_results_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads.Workload, "allowed", lambda _, *, ours: 1.0 if ours else 0.0)
    monkeypatch.setattr(sys, "argv", ["peers.py", "--short", "--engines", "ours", "onnxruntime"])
    found = peers.measure(WORKLOADS[-3], 1, peers.arguments())
    assert found["onnxruntime"]["failed"].startswith("its results are off by ")
    assert len(found["ours"]["rounds"]) == 1


def test_an_engine_that_cannot_run_says_why(tmp_path: Path) -> None:
    files = WORKLOADS[-3].files(tmp_path, small=True)
    files[0].write_bytes(b"no model")
    with pytest.raises(peers.Failed, match="no model"):
        peers.Process("ours", files, 1, tmp_path, "f32")


def test_the_report_has_ratios_of_rounds_and_reasons(tmp_path: Path) -> None:
    common = {"version": "1", "error": 1e-7, "cold": 1.0, "load": 0.5, "megabytes": 10.0, "hosted": []}
    found = {
        "ours": {
            **common,
            "rounds": [1.0, 2.0, 3.0],
            "hosted": ["Scan"],
            "operations": 10**9,
            "weights": 64 << 20,
            "ceilings": [[2e9, 1e9], [1e9, 1e9], [2e9, 1e9]],
            "kernels": {"loop": 0.75, "matmul": 0.246, "rows": 0.004},
        },
        "onnxruntime": {**common, "rounds": [2.0, 2.0, 9.0]},
        "tract": {"failed": "it has no\nsuch operator"},
    }
    assert report.ratio(found, "onnxruntime") == 2.0
    assert report.ratio(found, "tract") is None
    assert report.fastest_ratio(found) == 2.0
    assert report.mean([2.0, None, 8.0]) == "4.00"
    (tmp_path / "LSTM-1.json").write_text(peers.json.dumps({"date": "2030-01-01", "engines": found}))
    (tmp_path / report.STREAMS).mkdir()
    stream = {"name": "GRU, pulse 8", "microseconds": 12.345, "ratio": 3.0}
    (tmp_path / report.STREAMS / "0.json").write_text(peers.json.dumps(stream))
    quicker = {"ours": {**found["ours"], "rounds": [1.0, 0.5, 0.5], "ceilings": [[1e9, 1e9]] * 3}}
    (tmp_path / "LSTM int8-1.json").write_text(peers.json.dumps({"date": "2030-01-01", "engines": quicker}))
    readme = tmp_path / "README.md"
    readme.write_text("# Speed\n| LSTM | old |\n| other | kept |\n")
    report.write(tmp_path / "page.md", readme, tmp_path, ["LSTM", "LSTM int8", "BERT-base"], {"processor": "P"})
    assert readme.read_text() == "# Speed\n| LSTM | 2000 | 2000 | - | - | - | 2.00 |  |\n| other | kept |\n"
    page = (tmp_path / "page.md").read_text()
    assert "| LSTM | 2000 | 2000 | - | - | - | 2.00 |  |" in page
    assert "- tract: it has no such operator: LSTM (1)" in page
    assert "- LSTM: Scan" in page
    assert "| LSTM | 1 | 67.1 | 500 | 67.1 | 2000 | 50% | loop 75%, matmul 25% |" in page
    assert "| LSTM int8 (1) | 4.00 |" in page
    assert "| GRU, pulse 8 | 12.3 | 3.00 |" in page
    assert "BERT-base" not in page


def test_what_bounds_a_network_is_summed_over_what_a_profile_times(tmp_path: Path) -> None:
    path, _ = WORKLOADS[-3].files(tmp_path, small=True)
    runnable = tract.runtime_for_name("cpu").prepare(tract.onnx().load(path).into_model())
    found = bounds.bounds_of(runnable, [np.zeros([1, 64], np.float32)])
    products = 2 * (64 * 256 + 256 * 256 + 256 * 8)
    assert products < found["operations"] < 1.02 * products
    assert "matmul" in found["kernels"]
    assert sum(found["kernels"].values()) == pytest.approx(1.0)


def imported(script: Path) -> set[str]:
    """The modules that a script imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(script.read_text())))
    plain = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("script", sorted(BENCH.glob("*.py")), ids=lambda script: script.stem)
def test_scripts_import_what_is_there(script: Path) -> None:
    beside = {one.stem for folder in (BENCH, *TESTS) for one in folder.glob("*.py")}
    elsewhere = {name for name in imported(script) if name.partition(".")[0] not in beside | ELSEWHERE}
    assert [name for name in elsewhere if not (find_spec(name.partition(".")[0]) and find_spec(name))] == []
