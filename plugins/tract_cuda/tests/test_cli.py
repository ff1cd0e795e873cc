"""``tract MODEL cuda`` shows programs and kernels where there is no GPU, and says what is wrong with what was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from tract_core.cli.frame import app

NODES = "p = MatMul(x, w) r = Relu(p) n = RandomNormalLike(r) y = Gather(n, i)"
GRAPH = f"(float[B,2] x, int64[1] i) => (float[1,3] y) <float[2,3] w = {{1,2,3,4,5,6}}> {{ {NODES} }}"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TRACT_CUDA_DRIVER", "libnone.so")
    file = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {GRAPH}'), file)
    return str(file)


def tract(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def told(*arguments: str) -> str:
    result = tract(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def read(*arguments: str) -> Any:
    return json.loads(told(*arguments, "--json"))


def test_steps_are_listed_in_order(model: str) -> None:
    lines = [" ".join(line.split()) for line in told(model, "cuda").splitlines()]
    assert lines == [
        "0 upload x",
        "1 launch tile [(B+31)/32x1x1] p, r",
        "2 download r",
        "3 hosted RandomLike n: there is no kernel for this operator yet",
        "4 upload n",
        "5 upload i",
        "6 launch gather [1x1x1] y",
        "7 download y",
    ]


def test_the_same_as_json(model: str) -> None:
    entries = read(model, "cuda")
    assert [entry["step"] for entry in entries] == list(range(8))
    assert entries[1] == {
        "step": 1,
        "kind": "launch",
        "kernel": "tile",
        "grid": "(B+31)/32x1x1",
        "nodes": entries[1]["nodes"],
        "names": ["p", "r"],
    }
    assert entries[3]["why"] == "there is no kernel for this operator yet"
    assert entries[4]["tensor"] == "n"


def test_one_node_by_name_and_by_id(model: str) -> None:
    (entry,) = read(model, "cuda", "--node", "r")
    assert entry["names"] == ["p", "r"]
    assert read(model, "cuda", "--node", str(entry["nodes"][-1])) == [entry]
    (hosted,) = read(model, "cuda", "--node", "n")
    assert hosted["kind"] == "hosted"


def test_all_that_was_decided(model: str) -> None:
    (entry,) = read(model, "cuda", "--node", "y", "--plan")
    assert "GatherPlan" in entry["plan"]
    assert "GatherPlan" in told(model, "cuda", "--node", "y", "--plan")


@pytest.mark.parametrize(
    ("name", "line"),
    [("group", "0 products p, r"), ("choose_kernels", "2 download r from"), ("plan_memory", "slot 0:")],
)
def test_what_each_pass_gives(model: str, name: str, line: str) -> None:
    text = told(model, "cuda", "--after", name)
    assert line in text
    assert read(model, "cuda", "--after", name) == {"after": name, "lines": text.splitlines()}


def test_kernels_as_ptx(model: str) -> None:
    text = told(model, "cuda", "--ptx", "gather", "--arch", "sm_90a")
    assert ".target sm_90a" in text
    assert ".visible .entry gather(" in text
    assert ".target sm_80" in told(model, "cuda", "--ptx", "gather", "--arch", "sm_80")
    (kernel,) = read(model, "cuda", "--ptx", "6")
    assert (kernel["kernel"], kernel["threads"]) == ("gather", 256)
    assert ".visible .entry gather(" in kernel["ptx"]


def test_the_number_of_multiprocessors_counts(tmp_path: Path) -> None:
    file = tmp_path / "deep.onnx"
    graph = "(float[64,4096] x) => (float[64,64] y) { w = RandomNormal<shape = [4096, 64]>() y = MatMul(x, w) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {graph}'), file)
    texts = {told(str(file), "cuda", "--multiprocessors", count) for count in ("1", "132")}
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("more", "status", "problem"),
    [
        (("--after", "lay_out"), 1, "the compiler has no pass 'lay_out'"),
        (("--after", "lay_out"), 1, "its passes are native_form, group, choose_kernels, plan_memory"),
        (("--arch", "sm_70"), 1, "there is no architecture 'sm_70'"),
        (("--arch", "sm_70"), 1, "there are sm_80, sm_89"),
        (("--node", "z"), 1, "there is no node 'z'"),
        (("--node", "w"), 1, "no step computes node 'w'"),
        (("--ptx", "conv"), 1, "its kernels are tile, gather"),
        (("--ptx", "3"), 1, "there is no kernel '3' in the program"),
        (("--multiprocessors", "0"), 2, "0 is not in the range x>=1"),
        (("--ir",), 2, "--ir is a flag of 'native', not of 'cuda'"),
        (("more",), 2, "more"),
    ],
)
def test_mistakes_are_told(model: str, more: tuple[str, ...], status: int, problem: str) -> None:
    result = tract(model, "cuda", *more)
    assert result.exit_code == status
    assert problem in " ".join(result.output.split())


def test_without_a_model(model: str) -> None:
    result = tract("cuda")
    assert result.exit_code == 2
    assert "write 'tract MODEL cuda'" in result.output


def test_a_program_without_steps(tmp_path: Path) -> None:
    graph = "(float[2] x) => (float[2] y) { y = Constant<value = float[2] {1,2}>() }"
    file = tmp_path / "constant.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {graph}'), file)
    result = tract(str(file), "cuda")
    assert result.exit_code == 1
    assert "the program has no steps" in result.output
