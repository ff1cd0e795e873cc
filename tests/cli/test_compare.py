from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper, numpy_helper

from tract_core.plugins import refresh

Call = Callable[..., Result]
RANDOM = ("-R", "--set", "B=2")


@pytest.fixture
def tract(tract: Call) -> Call:
    """On the runtime that fuses no nodes, where nothing else is asked for."""

    def call(path: Path, *arguments: object) -> Result:
        return tract(path, "-r", "reference", *arguments)

    return call


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
    assert "partner 'abacus' is not installed; installed partners: onnxruntime, openvino" in result.output
    assert "did you mean 'openvino'?" in tract(model, "compare", "--with", "openvin", *RANDOM).output


def test_with_openvino(tract: Call, model: Path) -> None:
    pytest.importorskip("openvino")
    result = tract(model, "compare", "--with", "openvino", *RANDOM)
    assert result.exit_code == 0
    assert "agrees  EinSum product" in result.output
    assert "output y" in result.output
    assert tract(with_external_data(model), "compare", "--with", "openvino", *RANDOM).exit_code == 0
    wrong = with_wrong_weight(model)
    result = tract(wrong, "compare", "--with", "openvino", "--original", model, *RANDOM, "--json")
    assert json.loads(result.stdout)["first"] == "product"


def test_what_openvino_refuses(tract: Call, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x08nothing")
    result = tract(model, "compare", "--with", "openvino", "--original", tmp_path / "broken.onnx", *RANDOM)
    assert result.exit_code == 1
    assert "openvino cannot load the model: " in result.output
    proto = onnx.load(model)
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "other"
    onnx.save(proto, tmp_path / "renamed.onnx")
    result = tract(model, "compare", "--with", "openvino", "--original", tmp_path / "renamed.onnx", *RANDOM)
    assert "openvino wants the inputs other, which have no value" in result.output


def test_without_openvino(tract: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    result = tract(model, "compare", "--with", "openvino", *RANDOM)
    assert result.exit_code == 1
    assert "pip install openvino" in result.output


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("partner", ["onnxruntime", "openvino"])
def test_halves_beside_the_file_in_f32(tract: Call, model: Path, kind: str, partner: str) -> None:
    """Inputs become wider for the partner, floats of both types are compared, and it is said what is normal."""
    pytest.importorskip(partner)
    change = ("-t", f"float_precision(from: f32, to: {kind})")
    result = tract(model, *change, "compare", "--with", partner, *RANDOM, "--approx", "very")
    assert result.exit_code == 0
    apart = {"f16": "0.1%", "bf16": "0.8%"}[kind]
    normal = "engines that round elsewhere differ by up to 4 such steps of the largest number of a tensor: here by "
    assert f"numbers in {kind} are up to {apart} apart, and {normal}" in result.output
    assert "which is normal" in result.output
    content = json.loads(tract(model, *change, "compare", "--with", partner, *RANDOM, "--json").stdout)
    steps = [float(one["half"]["steps"]) for one in content["tensors"] if one["compared"]]
    assert len(steps) >= 2
    assert 0 < max(steps) <= 4
    assert not any("element type" in (one["problem"] or "") for one in content["tensors"])


def test_halves_that_differ_by_what_is_normal_are_told_how_to_pass(tract: Call, model: Path) -> None:
    change = ("-t", "float_precision(from: f32, to: bf16, keep_io_types: true)")
    result = tract(model, *change, "compare", "--with", "onnxruntime", *RANDOM, "--approx", "exact")
    assert result.exit_code == 1
    assert "by no more than is normal in half precision: --approx very allows that" in result.output


def test_halves_that_differ_by_more_are_not_excused(tract: Call, model: Path) -> None:
    wrong = with_wrong_weight(model)
    result = tract(wrong, "-t", "f32_to_f16", "compare", "--with", "onnxruntime", "--original", model, *RANDOM)
    assert result.exit_code == 1
    assert "in 'product', which is more" in result.output
    assert "normal in half precision" not in result.output


def test_models_without_halves_are_told_nothing_of_them(tract: Call, model: Path) -> None:
    assert "apart, and" not in tract(model, "compare", "--twice", *RANDOM).output


def test_floats_of_another_type_differ_where_nothing_changed_them(tract: Call, model: Path, steps: Path) -> None:
    tensors = {name: array.astype(np.float64) for name, array in np.load(steps).items()}
    np.savez(steps, **tensors)
    result = tract(model, "compare", "--npz", steps, *RANDOM)
    assert "element type is float32, wanted float64" in result.output
    assert tract(model, "compare", "--npz", steps, *RANDOM, "--allow-float-casts").exit_code == 0


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


@pytest.fixture
def second_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A runtime named 'second' is installed, which computes as the reference does."""
    site = tmp_path / "site"
    info = site / "tract_second-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tract-second\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tract]\nsecond = tract_second\n")
    (site / "tract_second.py").write_text(SECOND)
    monkeypatch.syspath_prepend(str(site))
    refresh()
    yield
    monkeypatch.undo()
    sys.modules.pop("tract_second", None)
    refresh()


SECOND = """
from tract_core.plugins import hookimpl
from tract_core.runtime.reference import ReferenceRuntime

@hookimpl
def tract_api_version():
    return "1.0"

@hookimpl
def tract_runtimes():
    return {"second": "tract_second:Second"}

class Second(ReferenceRuntime):
    name = "second"
"""


def test_two_runtimes(tract: Call, model: Path, second_runtime: None) -> None:
    result = tract(model, "compare", "--runtime", "second", "--against", "default", *RANDOM)
    assert result.exit_code == 0
    assert "compared with runtime 'cpu'" in result.output
    assert tract(model, "compare", "--against", "second", *RANDOM).exit_code == 0
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


def test_a_runtime_that_shows_no_nodes(
    tract: Call, model: Path, steps: Path, monkeypatch: pytest.MonkeyPatch, second_runtime: None
) -> None:
    from tract_core.runtime.reference import ReferenceRuntime

    prepare = ReferenceRuntime.prepare
    monkeypatch.setattr(ReferenceRuntime, "prepare", lambda self, model: Opaque(prepare(self, model)))
    assert tract(model, "compare", "--npz", steps, *RANDOM).output.count("agrees") >= 3
    assert "agrees  EinSum product" in tract(model, "compare", "--against", "second", *RANDOM).output
    wrong = tract(with_wrong_weight(model), "compare", "--npz", steps, *RANDOM)
    assert "the first is 'product', which EinSum computes" in wrong.output
    assert "does not show single nodes" in tract(model, "run", *RANDOM, "--steps").output


def test_differences_are_printed_where_it_agrees_too(tract: Call, model: Path, steps: Path) -> None:
    arrays = dict(np.load(steps))
    arrays["y"] = arrays["y"] + np.float32([[0, 0, 3e-5], [0, 0, 0]])
    np.savez(steps, **arrays)
    result = tract(model, "compare", "--npz", steps, *RANDOM)
    assert result.exit_code == 0
    assert "output y  largest 3e-05    mean 5e-06\n" in result.output
    assert "largest 0        mean 0" in result.output
    content = json.loads(tract(model, "compare", "--npz", steps, *RANDOM, "--json").stdout)
    (y,) = [one for one in content["tensors"] if one["name"] == "y"]
    assert y["largest"] == pytest.approx(3e-5, rel=0.02)
    assert y["mean"] == pytest.approx(5e-6, rel=0.02)
    assert y["output"]
    assert [one["output"] for one in content["tensors"]].count(True) == 1


def test_a_difference_that_json_has_no_number_for(tract: Call, model: Path, steps: Path) -> None:
    np.savez(steps, y=np.full((2, 3), np.nan, np.float32))
    result = tract(model, "compare", "--npz", steps, *RANDOM, "--json")
    assert result.exit_code == 1
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert [one["largest"] for one in content["tensors"] if one["compared"]] == ["inf"]


@pytest.mark.parametrize(
    ("runtime", "flags"),
    [
        ("reference", ("--against", "reference")),
        ("default", ("--against", "default")),
        ("reference", ("--stage", "before-optimize")),
    ],
)
def test_a_model_is_not_compared_with_itself(tract: Call, model: Path, runtime: str, flags: tuple[str, ...]) -> None:
    result = tract(model, "-r", runtime, "compare", *flags, *RANDOM)
    assert result.exit_code == 1
    assert "would be compared with itself" in result.output


def test_every_output_has_a_counterpart(tract: Call, model: Path, steps: Path) -> None:
    only = model.with_name("only.npz")
    np.savez(only, product=np.load(steps)["product"])
    result = tract(model, "compare", "--npz", only, *RANDOM)
    assert result.exit_code == 1
    assert "output 'y' could not be compared" in result.output
    assert "has no tensor of that name" in result.output
    assert tract(model, "compare", "--npz", only, *RANDOM, "--allow-missing-outputs").exit_code == 0


@pytest.mark.parametrize("stage", ["type", "declutter"])
def test_outputs_that_no_node_computes_are_compared_too(tract: Call, tmp_path: Path, stage: str) -> None:
    """After declutter they are constants and inputs."""
    nodes = [helper.make_node("Add", ["one", "one"], ["two"]), helper.make_node("Identity", ["x"], ["same"])]
    nodes.append(helper.make_node("Neg", ["x"], ["y"]))
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y", "two", "same")}
    outputs = [values[name] for name in ("y", "two", "same")]
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")
    graph = helper.make_graph(nodes, "g", [values["x"]], outputs, [one])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    arrays = {"x": [3], "y": [-3], "two": [2], "same": [3]}
    for wrong in (None, "y", "two", "same"):
        npz = {name: np.array(value, np.float32) + (name == wrong) for name, value in arrays.items()}
        np.savez(tmp_path / "x.npz", x=np.array([3], np.float32))
        np.savez(tmp_path / "all.npz", **{name: array for name, array in npz.items() if name != "x"})
        flags = ("--input-from-npz", tmp_path / "x.npz", "--npz", tmp_path / "all.npz")
        result = tract(tmp_path / "m.onnx", "--pass", stage, "compare", *flags)
        assert result.exit_code == (0 if wrong is None else 1)
        assert wrong is None or f"the first is {wrong!r}" in result.output


@pytest.mark.parametrize(
    "text",
    ["inf,0,0", "0,inf,0", "nan,0,0", "0,nan,0", "0,0,nan", "0,0,1", "0,0,inf", "-1,0,0", "0,-1,0", "0,0,-1", "1"],
)
def test_tolerances_that_let_everything_pass(tract: Call, model: Path, text: str) -> None:
    for command in (("compare", "--twice"), ("run",), ("dump",), ("bench",)):
        result = tract(model, *command, *RANDOM, "--approx-custom", text)
        assert result.exit_code == 2
        assert f"--approx-custom {text!r} is no" in result.output
