"""The first run on a device, over the virtual GPU: each part works, and goes on where something fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TOOLS = Path(__file__).parents[1] / "tools"
SCRIPT = TOOLS / "first_device_run.py"
PARTS = ["load", "kit", "networks", "ceilings", "tiles", "speed", "where", "sanitizer"]
SPEEDS = {"ms", "us", "GB/s", "TFLOP/s", "TOP/s", "report", "tile", "us, waited for"}
UNFINISHED = "it did not end"

DRIVERS = '''
import time
from tract_cuda.testing.virtual import VirtualGpu


class Lost(VirtualGpu):
    """A device that is lost at the third time that somebody waits for it, in each process."""

    def __init__(self):
        super().__init__()
        self.fail("cuStreamSynchronize", 719, call=3)


class Slow(VirtualGpu):
    """A device on which nothing ends."""

    def _cuStreamSynchronize(self, stream):
        time.sleep(600)
'''


def first_run(folder: Path, *more: str, driver: str = "tract_cuda.testing.virtual:VirtualGpu") -> tuple[int, str]:
    """The status, and what was told."""
    (folder / "drivers.py").write_text(DRIVERS)
    known = os.environ | {"TRACT_CUDA_DRIVER": driver, "PYTHONPATH": str(folder)}
    command = [sys.executable, SCRIPT, "--out", folder, "--small", *more]
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def report_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    status, told = first_run(folder)
    assert status == 0, told
    return folder


def test_all_parts_come_to_their_ends(whole: Path) -> None:
    report = report_of(whole)
    assert list(report["parts"]) == PARTS
    for name, part in report["parts"].items():
        assert part["ended"] == "to its end", name
        assert part["rows"], name
        assert not [row for row in part["rows"].values() if "failed" in row], name


def test_what_was_computed_is_right(whole: Path) -> None:
    parts = report_of(whole)["parts"]
    rows = [*parts["networks"]["rows"].values(), *parts["speed"]["rows"].values()]
    differences = [row["difference"] for row in rows if "difference" in row]
    assert len(differences) == 8
    assert max(differences) < 1e-6  # of the largest number; sums of f32 in another order
    assert all(row["same bits again"] for row in parts["networks"]["rows"].values())
    assert parts["kit"]["rows"]["the kit: trilu"]["passed"] > 50
    assert sum(row["kernels"] for row in parts["load"]["rows"].values()) > 10


def test_nothing_of_the_virtual_gpu_is_told_as_a_speed(whole: Path) -> None:
    report = report_of(whole)
    assert report["device"]["device"] == "virtual"
    assert not [key for part in report["parts"].values() for row in part["rows"].values() for key in {*row} & SPEEDS]
    text = (whole / "report.md").read_text()
    assert "This is the virtual GPU" in text
    assert not (whole / "measured.json").exists()


def test_another_call_does_nothing_again(whole: Path) -> None:
    before = report_of(whole)
    status, told = first_run(whole, "--only", "ceilings", "where")
    assert status == 0, told
    assert "bandwidth" not in told
    assert [part["rows"] for part in report_of(whole)["parts"].values()] == [
        part["rows"] for part in before["parts"].values()
    ]


def test_a_part_goes_on_when_the_device_is_lost(tmp_path: Path) -> None:
    status, told = first_run(tmp_path, "--only", "ceilings", "sanitizer", driver="drivers:Lost")
    assert status == 1
    parts = report_of(tmp_path)["parts"]
    assert parts["ceilings"]["ended"] == "to its end", told
    assert parts["sanitizer"]["rows"]
    rows = parts["ceilings"]["rows"]
    failed = {what: row["failed"] for what, row in rows.items() if "failed" in row}
    assert len(rows) == 13
    assert 0 < len(failed) < len(rows)
    assert all("the context of this process is lost" in why for why in failed.values())
    status, told = first_run(tmp_path, "--only", "ceilings")
    assert status == 0, told
    assert told.count("[ceilings] ") == len(failed) + 2  # what failed is done anew, and nothing else


def test_a_part_is_stopped_at_its_limit(tmp_path: Path) -> None:
    more = ("--only", "ceilings", "sanitizer", "--seconds", "12")
    status, told = first_run(tmp_path, *more, driver="drivers:Slow")
    assert status == 1
    parts = report_of(tmp_path)["parts"]
    assert parts["ceilings"]["ended"] == "stopped at its limit", told
    ((what, row),) = parts["ceilings"]["rows"].items()
    assert what == "memory bandwidth"
    assert row["failed"].startswith(UNFINISHED)
    assert parts["sanitizer"]["ended"] == "to its end"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (Path(__file__).parents[3] / "bench", TOOLS):
        monkeypatch.syspath_prepend(str(folder))


def test_engines_are_side_by_side_in_the_report(tools: None) -> None:
    from device_run.report import markdown

    rows = {
        "ResNet-50 | 1 | f32 | cuda": {"ms": 1.0871, "difference": 3e-7},
        "ResNet-50 | 1 | f32 | ORT-CUDA": {"left out": "this ONNX Runtime has none"},
        "ResNet-50 | 32 | f32 | cuda": {"failed": "out of memory"},
        "ResNet-50 | 1 | f32 | torch.compile": {"ms": 2481.3, "difference": 4e-6},
    }
    part = {"ended": "to its end", "seconds": 3, "rows": rows}
    text = markdown({"device": {"device": "NVIDIA H100"}, "parts": {"speed": part}})
    lines = text.splitlines()
    assert "| network | batch | precision | cuda, ms | ORT-CUDA, ms | torch.compile, ms | largest difference |" in lines
    assert "| ResNet-50 | 1 | f32 | 1.09 | left out | 2,481 | 4e-06 |" in lines
    assert "| ResNet-50 | 32 | f32 | failed |  |  |  |" in lines
    assert "virtual" not in text


def test_networks_of_several_rows(tools: None) -> None:
    from device_run import networks

    for name in networks.NETWORKS:
        if name in networks.ONE_ROW:
            with pytest.raises(ValueError, match="its graph is for one batch"):
                networks.network(name, small=True, batch=2)
        else:
            _, outputs = networks.wanted(name, small=True, batch=2)
            assert all(len(array) == 2 for array in outputs)
            if any(array.dtype.kind == "f" for array in networks.network(name, small=True).inputs.values()):
                assert not any(np.array_equal(array[0], array[1]) for array in outputs), name


def test_networks_are_the_same_in_pytorch(tools: None) -> None:
    torch = pytest.importorskip("torch")
    from device_run import networks
    from device_run.torch_network import KNOWN, TorchNetwork

    compared = 0
    for name in networks.NETWORKS:
        one = networks.network(name, small=True)
        if {node.op_type for node in one.model.graph.node} <= KNOWN:
            module = TorchNetwork(one.model, "cpu", torch.float32).eval()
            found = module(*map(torch.from_numpy, one.inputs.values()))
            _, right = networks.wanted(name, small=True)
            assert networks.difference([part.detach().numpy() for part in found], right) < 1e-5, name
            compared += 1
    assert compared >= 14


def test_kernels_are_loaded_by_several_processes(tmp_path: Path) -> None:
    text = """
        from device_run.load import _all_loaded
        from device_run.ceiling_kernels import MMAS, Added, Copied, TensorCores
        from tract_cuda.language.arch import arch_named
        if __name__ == "__main__":
            plans = [Added(), Copied(), *map(TensorCores, MMAS.values())] * 4
            found = _all_loaded([(plan, arch_named("sm_90")) for plan in plans], several=True)
            print(len(found), {one["problem"] for one in found}, sum(one["local_bytes"] for one in found))
    """
    file = tmp_path / "several.py"
    file.write_text("\n".join(line[8:] for line in text.splitlines()))
    known = {"TRACT_CUDA_DRIVER": "tract_cuda.testing.virtual:VirtualGpu", "PYTHONPATH": str(TOOLS)}
    done = subprocess.run([sys.executable, file], env=os.environ | known, capture_output=True, text=True, check=False)
    assert done.stdout == "24 {''} 0\n", done.stderr
