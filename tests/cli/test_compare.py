from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import numpy_helper

Call = Callable[..., Result]
RANDOM = ("-R", "--set", "B=2")


def with_wrong_weight(model: Path) -> Path:
    """The same model with one of the weights of its product changed."""
    proto = onnx.load(model)
    (weights,) = [tensor for tensor in proto.graph.initializer if tensor.name == "w"]
    array = numpy_helper.to_array(weights).copy()
    array[2, 1] += 1
    weights.CopyFrom(numpy_helper.from_array(array, "w"))
    onnx.save(proto, model.with_name("wrong.onnx"))
    return model.with_name("wrong.onnx")


def with_external_data(model: Path) -> Path:
    """The same model, its weights in a file beside it."""
    target = model.parent / "apart" / "model.onnx"
    target.parent.mkdir()
    onnx.save(onnx.load(model), target, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (target.parent / "weights.bin").exists()
    return target


@pytest.fixture
def steps(tract: Call, model: Path) -> Path:
    """What every node of the right model computes."""
    path = model.with_name("steps.npz")
    assert tract(model, "run", *RANDOM, "--save-steps", path).exit_code == 0
    return path


def test_with_onnxruntime(tract: Call, model: Path) -> None:
    pytest.importorskip("onnxruntime")
    result = tract(model, "compare", "--with", "onnxruntime", *RANDOM)
    assert result.exit_code == 0
    assert "agrees  EinSum product" in result.output
    assert "compared with onnxruntime" in result.output
    assert tract(model, "--pass", "type", "compare", "--with", "onnxruntime", *RANDOM).output.count("agrees") >= 4


def test_with_onnxruntime_a_wrong_weight_is_found(tract: Call, model: Path) -> None:
    pytest.importorskip("onnxruntime")
    wrong = with_wrong_weight(model)
    assert tract(wrong, "compare", "--with", "onnxruntime", *RANDOM).exit_code == 0
    result = tract(wrong, "compare", "--with", "onnxruntime", "--original", model, *RANDOM, "--json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["first"] == "product"
    (bad,) = [one for one in content["tensors"] if one["problem"]]
    assert "2 of 6 elements differ" in bad["problem"]
    assert "the first is 'product', which EinSum computes: 2 of 6 elements differ" in result.output


def test_with_onnxruntime_and_external_data(tract: Call, model: Path) -> None:
    pytest.importorskip("onnxruntime")
    assert tract(with_external_data(model), "compare", "--with", "onnxruntime", *RANDOM).exit_code == 0


def test_without_onnxruntime(tract: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = tract(model, "compare", "--with", "onnxruntime", *RANDOM)
    assert result.exit_code == 1
    assert "pip install onnxruntime" in result.output


def test_an_unknown_engine(tract: Call, model: Path) -> None:
    result = tract(model, "compare", "--with", "abacus", *RANDOM)
    assert result.exit_code == 1
    assert "no engine 'abacus' to compare with; known are: onnxruntime" in result.output


def test_npz_names_the_first_node_with_both_values(tract: Call, model: Path, steps: Path) -> None:
    assert tract(model, "compare", "--npz", steps, *RANDOM).exit_code == 0
    wrong = with_wrong_weight(model)
    result = tract(wrong, "compare", "--npz", steps, *RANDOM, "-q")
    assert result.exit_code == 1
    first, other = map(str, np.load(steps)["product"][:, 1])
    assert "'product', which EinSum computes" in result.output
    assert f"wanted {first}" in result.output or f"wanted {other}" in result.output
    assert result.output.count("differs") == 1
    adding_up = tract(wrong, "compare", "--npz", steps, *RANDOM, "-q", "--cumulative")
    assert adding_up.output.count("differs") > 1


def test_npz_without_a_common_name(tract: Call, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", unrelated=np.zeros(3))
    result = tract(model, "compare", "--npz", tmp_path / "other.npz", *RANDOM)
    assert result.exit_code == 1
    assert "nothing was compared" in result.output


def test_another_stage_and_another_run(tract: Call, model: Path) -> None:
    result = tract(model, "compare", "--stage", "type", *RANDOM)
    assert result.exit_code == 0
    assert "agrees" in result.output
    assert tract(model, "compare", "--twice", *RANDOM, "--approx", "exact").exit_code == 0


def test_two_runtimes(tract: Call, model: Path) -> None:
    result = tract(model, "compare", "--runtime", "reference", "--against", "default", *RANDOM)
    assert result.exit_code == 0
    assert "compared with runtime 'reference'" in result.output
    for flags in (("--against", "nonsense"), ("--runtime", "nonsense", "--against", "default")):
        assert "nonsense" in tract(model, "compare", *flags, *RANDOM).output


def test_one_reference_is_wanted(tract: Call, model: Path) -> None:
    for flags in ((), ("--twice", "--stage", "type"), ("--twice", "--original", model)):
        assert tract(model, "compare", *RANDOM, *flags).exit_code == 2
    assert "--with, --against, --stage, --npz, --twice" in tract(model, "compare", "-R").output


class Opaque:
    """A plan that shows no single nodes, as those of compiling runtimes."""

    def __init__(self, plan) -> None:
        self._plan = plan

    def spawn(self):
        return self._plan.spawn()

    def explain(self):
        return self._plan.explain()


def test_a_runtime_that_shows_no_nodes(tract: Call, model: Path, steps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tract_core.runtime.reference import ReferenceRuntime

    prepare = ReferenceRuntime.prepare
    monkeypatch.setattr(ReferenceRuntime, "prepare", lambda self, model: Opaque(prepare(self, model)))
    assert tract(model, "compare", "--npz", steps, *RANDOM).output.count("agrees") >= 3
    assert "agrees  EinSum product" in tract(model, "compare", "--against", "default", *RANDOM).output
    wrong = tract(with_wrong_weight(model), "compare", "--npz", steps, *RANDOM)
    assert "the first is 'product', which EinSum computes" in wrong.output
    assert "does not show single nodes" in tract(model, "run", *RANDOM, "--steps").output
