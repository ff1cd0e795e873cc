"""What one can see: ceilings of the machine, kernels with their code, names for perf, profiles with rates."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper
from tract_cpu.caches import sizes_of_caches
from tract_cpu.ceilings import CHAINS, Meter, levels
from tract_cpu.compile import COMPILE
from tract_cpu.table_of_windows import table_from
from tract_llvm.isa import Isa
from tract_llvm.objects.library import Library

from tract_core.cache.cache import Cache
from tract_core.cli.frame import app

Call = Callable[..., Result]


@pytest.fixture
def tract() -> Call:
    def call(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x @ w), where x: B,64."""
    weights = numpy_helper.from_array(np.ones((64, 32), "f4"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="p"), helper.make_node("Relu", ["p"], ["y"], name="y")]
    infos = [helper.make_tensor_value_info(*one) for one in (("x", TensorProto.FLOAT, ["B", 64]),)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 32])]
    path = tmp_path / "small.onnx"
    graph = helper.make_graph(nodes, "small", infos, outputs, [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


class Counted(Meter):
    """Calls what would be measured, once for so many rounds, and keeps how much work that was."""

    rounds = 3

    def _rate(self, work: int, calls: list[Callable[[int], None]]) -> float:
        for call in calls:
            call(self.rounds)
        return float(work * len(calls))


@pytest.fixture
def counted(isa: Isa) -> Counted:
    return Counted(isa, library=Library(isa, Cache(None)))


def test_what_is_counted_is_what_is_done(counted: Counted) -> None:
    lanes = counted.isa.vector_bytes // 4
    assert counted.flops("f32", 2) == 2 * CHAINS * lanes * 2
    assert counted.flops("f64", 1) == CHAINS * lanes
    step = counted.isa.vector_bytes * CHAINS
    assert counted.bytes_read(10 * step + 5, 2) == 2 * 10 * step
    assert counted.bytes_copied(20 * step + 5, 1) == 20 * step


@pytest.mark.parametrize(
    ("files", "sizes"),
    [
        ({"index0": ("1", "Data", "48K"), "index1": ("1", "Instruction", "32K"), "index2": ("2", "Unified", "2M")},
         {"L1": 48 << 10, "L2": 2 << 20}),
        ({}, {"L1": 32 << 10, "L2": 1 << 20, "L3": 8 << 20}),
        ({"index0": ("1", "Data", "nonsense")}, {"L1": 32 << 10, "L2": 1 << 20, "L3": 8 << 20}),
    ],
)  # fmt: skip
def test_caches_are_as_large_as_the_system_says(
    tmp_path: Path, files: dict[str, tuple[str, str, str]], sizes: object
) -> None:
    for name, texts in files.items():
        (tmp_path / name).mkdir()
        for file, text in zip(("level", "type", "size"), texts, strict=True):
            (tmp_path / name / file).write_text(text + "\n")
    assert sizes_of_caches(tmp_path) == sizes


def test_hwbench_measures_every_level(tract: Call) -> None:
    found = json.loads(tract("hwbench", "--json", "--seconds", "0.001", "--threads", "2").stdout)
    assert list(found["memory"]) == list(levels())
    rates = [found["gflop_per_s"]["f32"], found["gflop_per_s"]["f64"]]
    for level in found["memory"].values():
        rates += [level["read_gb_per_s"], level["copy_gb_per_s"]]
    assert all(list(one) == ["1", "2"] and min(one.values()) > 0 for one in rates)
    assert found["call_us"] > 0
    shown = tract("hwbench", "--seconds", "0.001", "--threads", "1").stdout
    assert "GFLOP/s" in shown
    assert "reading memory, 256 MiB" in shown


def test_what_each_pass_gives_is_shown(tract: Call, model: Path) -> None:
    wanted_after = {
        "native_form": "EinSum(",
        "group": "product p, y",
        "lay_out": "y: where output 0 is wanted",
        "choose_kernels": "matmul p, y -> output[0]",
        "schedule": "matmul p, y -> output[0]",
        "plan_memory": "",
    }
    assert list(wanted_after) == list(COMPILE)
    for name, wanted in wanted_after.items():
        text = tract(model, "native", "--after", name).stdout
        assert wanted in text
        told = json.loads(tract(model, "native", "--after", name, "--json").stdout)
        assert told == {"after": name, "lines": text.splitlines()}


def test_a_pass_that_there_is_not_is_an_error_with_those_that_there_are(tract: Call, model: Path) -> None:
    result = tract(model, "native", "--after", "fuse")
    assert result.exit_code == 1
    assert "the compiler has no pass 'fuse'" in result.stderr
    assert ", ".join(COMPILE) in result.stderr


def test_the_kernels_of_a_model_are_listed_with_their_code(tract: Call, model: Path) -> None:
    (entry,) = json.loads(tract(model, "native", "--node", "y", "--plan", "--ir", "--assembly", "--json").stdout)
    assert entry["kernel"] == "matmul"
    assert entry["names"][-1] == "y"
    assert "tract_llvm.elements." in entry["plan"]
    assert f'define void @"{entry["symbol"]}"' in entry["ir"]
    assert f"{entry['symbol']}:" in entry["assembly"]
    shown = tract(model, "native", "--assembly").stdout
    assert f"{entry['symbol']}:" in shown
    by_id = json.loads(tract(model, "native", "--node", entry["nodes"][-1], "--json").stdout)
    assert by_id[0]["symbol"] == entry["symbol"]


def test_nodes_without_a_kernel_are_refused_with_the_reason(tract: Call, model: Path) -> None:
    result = tract(model, "native", "--node", "nowhere")
    assert result.exit_code == 1
    assert "there is no node 'nowhere'" in result.stderr
    result = tract(model, "native", "--node", "x")
    assert result.exit_code == 1
    assert "no kernel computes node 'x'" in result.stderr


def test_a_profile_compares_with_what_the_machine_can_do(tract: Call, model: Path) -> None:
    flags = ("-r", "cpu", "dump", "--profile", "--set", "B=100", "--max-loops", "1")
    timed = json.loads(tract(model, *flags, "--json").stdout)
    (group,) = timed["groups"]
    assert group["operations"] == 2 * 100 * 64 * 32 + 100 * 32 * 2
    assert group["bytes"] == 4 * (100 * 64 + 64 * 32 + 100 * 32 + 1)
    ceilings = timed["profiling_info"]["ceilings"]
    least = max(group["operations"] / ceilings["gflop_per_s"], group["bytes"] / ceilings["gb_per_s"]) / 1e9
    assert group["of_ceiling"] == pytest.approx(least / group["secs_per_iter"])
    shown = tract(model, *flags).stdout
    assert "GFLOP/s" in shown
    assert "this machine: " in shown


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="perf is of Linux")
def test_kernels_have_names_in_perf_where_that_is_asked_for(model: Path, tmp_path: Path) -> None:
    script = f"""
import os, tract_core as tract
tract.runtime_for_name("cpu").prepare(tract.load({str(model)!r}))
print(open(f"/tmp/perf-{{os.getpid()}}.map").read())
os.unlink(f"/tmp/perf-{{os.getpid()}}.map")
"""
    changed = {"TRACT_PERF": "1", "TRACT_CACHE": str(tmp_path)}
    told = subprocess.check_output([sys.executable, "-c", script], env={**os.environ, **changed}, text=True)
    names = [line.split()[2] for line in told.splitlines() if line]
    sizes = [int(line.split()[1], 16) for line in told.splitlines() if line]
    assert any(name.startswith("tract:matmul_") for name in names)
    assert min(sizes) > 0


def test_what_windows_says_of_cores_and_caches() -> None:
    """Two cores with two processors each; two caches of each level, one of the first for instructions."""
    rows = [
        (0b0011, 0, 1, 0, 0, 0, 0),
        (0b0011, 2, 1, 8, 64, 32 << 10, 1),
        (0b0011, 2, 1, 12, 64, 48 << 10, 2),
        (0b0011, 2, 2, 16, 64, 2 << 20, 0),
        (0b1100, 0, 1, 0, 0, 0, 0),
        (0b1100, 2, 1, 12, 64, 32 << 10, 2),
        (0b1111, 2, 3, 12, 64, 24 << 20, 0),
        (0b1111, 3, 0, 0, 0, 0, 0),
    ]
    content = b"".join(struct.pack("<QIxxxxBBHII4x", *row) for row in rows)
    found = table_from(content)
    assert found.cores == (0b0011, 0b1100)
    assert found.caches == {1: 48 << 10, 2: 2 << 20, 3: 24 << 20}
    assert table_from(content[:31]) == table_from(b"")
