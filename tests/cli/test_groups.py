"""Runtimes that fuse nodes, and bodies, in what the command prints; and how often a command prepares a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper

Call = Callable[..., Result]

RANDOM = ("-R", "--set", "B=3")


def value(name: str, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def save(path: Path, nodes: list[Any]) -> Path:
    graph = helper.make_graph(nodes, "fused", [value("x", "B", 4)], [value("y", "B", 4)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def fused(tmp_path: Path) -> Path:
    """y = softmax(exp(-|x|)): a chain of three, and what needs whole rows."""
    nodes = [
        helper.make_node("Abs", ["x"], ["size"]),
        helper.make_node("Neg", ["size"], ["minus"]),
        helper.make_node("Exp", ["minus"], ["e"]),
        helper.make_node("Softmax", ["e"], ["y"]),
    ]
    return save(tmp_path / "fused.onnx", nodes)


@pytest.fixture
def looping(tmp_path: Path) -> Path:
    """The rows of y: -x, by a loop over the rows."""
    nodes = [helper.make_node("Neg", ["row"], ["minus"]), helper.make_node("Exp", ["minus"], ["e"])]
    body = helper.make_graph(nodes, "body", [value("row", 4)], [value("e", 4)])
    return save(tmp_path / "looping.onnx", [helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)])


pytestmark = pytest.mark.usefixtures("fuse_installed")


def test_explained(tract: Call, fused: Path) -> None:
    text = " ".join(tract(fused, "-r", "fuse", "dump", "--explain").stdout.split())
    assert "cpu: blocks with minus, e" in text
    assert "cpu: blocks with size, minus" in text
    assert "cpu: numpy" in text


def test_steps_show_what_leaves_a_group(tract: Call, fused: Path) -> None:
    shown = tract(fused, "-r", "fuse", "run", "--steps", *RANDOM).stdout
    assert "Abs, Neg, Exp e 3,4,f32" in shown
    assert "minus" not in shown


def test_a_profile_lists_groups(tract: Call, fused: Path) -> None:
    flags = ("-r", "fuse", "dump", "--profile", "--set", "B=2", "--max-loops", "20")
    content = json.loads(tract(fused, *flags, "--json").stdout)
    (group,) = content["groups"]
    timed = [*(node for node in content["nodes"] if node["secs_per_iter"] is not None), group]
    assert sum(one["share"] for one in timed) == pytest.approx(1)
    kinds = {one["op_name"]: one["nodes"] for one in content["operators"]}
    assert kinds["Abs, Neg, Exp"] == 3
    shown = tract(fused, *flags, "--cost").stdout
    ids = "+".join(str(number) for _, number in group["qualified_ids"])
    assert ids in shown
    assert "size, minus, e" in shown
    only = tract(fused, *flags, "--node-name", "minus").stdout
    assert "size, minus, e" in only
    assert " y " not in only.split("\n\n")[0]


def test_a_profile_enters_bodies(tract: Call, looping: Path) -> None:
    flags = ("--pass", "type", "dump", "--profile", "--set", "B=3", "--max-loops", "20")
    content = json.loads(tract(looping, *flags, "--json").stdout)
    nodes = {node["node_name"]: node for node in content["nodes"] if node["secs_per_iter"] is not None}
    loop = next(node for node in nodes.values() if node["op_name"] == "Scan")
    inside = [node for node in nodes.values() if node["qualified_id"][0]]
    assert {node["qualified_id"][0][0][0] for node in inside} == {loop["qualified_id"][1]}
    assert sum(node["share"] for node in inside) < loop["share"]
    outside = [node for node in nodes.values() if not node["qualified_id"][0]]
    assert sum(node["share"] for node in outside) == pytest.approx(1)
    assert sum(one["share"] for one in content["operators"]) == pytest.approx(1)
    assert all(one["share"] >= 0 for one in content["operators"])
    shown = tract(looping, *flags).stdout
    assert f"{loop['node_name']}/e" in shown
    assert f"{loop['qualified_id'][1]}/" in shown


def test_costs_of_bodies(tract: Call, looping: Path) -> None:
    shown = tract(looping, "-r", "reference", "--pass", "type", "dump", "--unfold", "--cost", "--explain").stdout
    inside = shown.partition("body 0")[2]
    assert "FMA(F32)=" in inside
    assert "cpu: numpy" in inside


@pytest.mark.parametrize("flags", [("--explain",), ("--profile", "--cost", "--set", "B=2", "--max-loops", "1")])
def test_the_model_that_runs_is_shown(
    tract: Call, fused: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """A runtime that makes a model of its own of the one given: its nodes are listed, under its ids."""
    from tract_fuse.runtime import FusePlan, FuseRuntime  # pyright: ignore[reportMissingImports]: made by the fixture

    from tract_core.model.typed import TypedModel
    from tract_core.ops.elementwise import Sign

    def prepare(self: Any, model: TypedModel) -> Any:
        other = TypedModel(registry=model.registry)
        outlet = other.add_source("x", model.outlet_fact(model.inputs[0]))
        for number in range(20):
            (outlet,) = other.wire_node(f"own_{number}", Sign(), [outlet])
        other.set_outputs([outlet])
        return FusePlan(other, 8)

    monkeypatch.setattr(FuseRuntime, "prepare", prepare)
    shown = tract(fused, "-r", "fuse", "dump", *flags)
    assert shown.exit_code == 0, shown.output
    assert "own_19" in shown.stdout
    assert "minus" not in shown.stdout
    assert ("cpu: blocks with own_0" in " ".join(shown.stdout.split())) == ("--explain" in flags)


# -- compare -----------------------------------------------------------------------------------------------------------


def test_groups_are_compared_whole(tract: Call, fused: Path) -> None:
    result = tract(fused, "-r", "fuse", "compare", "--against", "reference", *RANDOM)
    assert result.exit_code == 0, result.output
    assert "agrees  Abs, Neg, Exp e" in result.output
    assert "minus" not in result.output


def test_a_group_that_is_wrong_is_taken_apart(tract: Call, fused: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fusing alone is wrong, the group differs, and its nodes, each by itself, agree."""
    import tract_fuse.runtime  # pyright: ignore[reportMissingImports]: made by `fuse_installed`

    right = tract_fuse.runtime.in_blocks

    def wrong(nodes: Any, values: Any, result: Any, block: int) -> bool:
        found = right(nodes, values, result, block)
        result *= np.float32(1.5 if len(nodes) > 1 else 1)
        return found

    monkeypatch.setattr(tract_fuse.runtime, "in_blocks", wrong)
    for flags in ((), ("--cumulative",)):
        result = tract(fused, "-r", "fuse", "compare", "--against", "reference", *RANDOM, *flags)
        assert result.exit_code == 1
        lines = [" ".join(line.split()[:2]) for line in result.output.splitlines()]
        agrees = [line for line in result.output.splitlines() if line.endswith("outside of its group")]
        assert len(agrees) == 2
        assert all(line.startswith("agrees ") for line in agrees)
        assert "differs Abs," in lines
        assert "the first is 'e', which Abs, Neg, Exp computes" in result.output


def test_a_node_that_is_wrong_is_found_in_its_group(
    tract: Call, fused: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = tmp_path / "steps.npz"
    flags = ("-r", "reference", "--pass", "type")
    assert tract(fused, *flags, "run", *RANDOM, "--save-steps", steps).exit_code == 0
    arrays = dict(np.load(steps))
    arrays["minus"] = arrays["minus"] * np.float32(2)
    arrays["e"] = arrays["e"] * np.float32(2)
    np.savez(steps, **arrays)
    result = tract(fused, "-r", "fuse", "compare", "--npz", steps, *RANDOM)
    assert result.exit_code == 1
    assert "the first is 'minus', which Neg computes" in result.output
    content = json.loads(tract(fused, "-r", "fuse", "compare", "--npz", steps, *RANDOM, "--json").stdout)
    assert {one["name"]: one["unfused"] for one in content["tensors"] if one["problem"]} == {
        "minus": True,
        "e": False,
        "y": False,
    }


# -- prepare -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        ("run", "--steps", "--chrome-trace", "trace.json", "--assert-output-count", "1"),
        ("bench", "--max-loops", "2", "--warmup-loops", "1", "--chrome-trace", "trace.json"),
        ("dump", "--profile", "--explain", "--max-loops", "2", "--chrome-trace", "trace.json"),
        ("dump", "--explain"),
        ("compare", "--twice"),
        ("-O", "dump", "--profile", "--explain", "--max-loops", "2"),
        ("-O", "run", "--steps"),
    ],
    ids=" ".join,
)
def test_a_command_prepares_a_model_once(
    tract: Call, fused: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    from tract_fuse.runtime import FuseRuntime  # pyright: ignore[reportMissingImports]: made by `fuse_installed`

    prepared: list[Any] = []
    prepare = FuseRuntime.prepare
    monkeypatch.setattr(FuseRuntime, "prepare", lambda self, model: prepared.append(model) or prepare(self, model))
    monkeypatch.chdir(tmp_path)
    inputs = ("--set", "B=2") if "dump" in flags or "bench" in flags else ("-R", "--set", "B=2")
    result = tract(fused, "-r", "fuse", *flags, *(inputs if flags != ("dump", "--explain") else ()))
    assert result.exit_code == 0, result.output
    assert len(prepared) == 1
    assert "tract_fuse.runtime" in sys.modules
