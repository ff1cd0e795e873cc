from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper

from tract_core.plugins.stages import STAGES

Call = Callable[..., Result]
WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """An input, and the output that belongs to it."""
    x = np.array([[1, -2, 3, -4], [0.5, 0, -1, 2]], np.float32)
    path = tmp_path / "io.npz"
    np.savez(path, x=x, y=np.maximum(x @ WEIGHTS + 1, 0))
    return path


def test_run_on_a_bundle_and_check(tract: Call, model: Path, bundle: Path) -> None:
    flags = ("--input-from-bundle", bundle, "--assert-output-bundle", bundle, "--approx", "approximate")
    result = tract(model, "run", *flags)
    assert result.exit_code == 0
    assert "2,3,f32" in result.output


def test_a_wrong_output_fails(tract: Call, model: Path, bundle: Path, tmp_path: Path) -> None:
    arrays = dict(np.load(bundle))
    arrays["y"][1, 2] += 1
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, **arrays)
    result = tract(model, "run", "--input-from-npz", bundle, "--assert-output-bundle", wrong)
    assert result.exit_code == 1
    assert "output 'y': 1 of 6 elements differ; the worst, at [1, 2]" in result.output


def test_an_output_written_down(tract: Call, model: Path) -> None:
    flags = ("-i", "x:1,4,f32", "run", "-R", "--random-range", "0..0.0000001")
    assert tract(model, *flags, "--assert-output", "1,3,f32=1,1,1", "--approx", "approximate").exit_code == 0
    assert tract(model, *flags, "--assert-output", "y:1,3,f32=1,2,1").exit_code == 1


def test_inputs_without_values_are_refused(tract: Call, model: Path) -> None:
    result = tract(model, "run")
    assert result.exit_code == 1
    assert "input 'x' (B,4,f32) has no value" in result.output
    assert "-R" in result.output


def test_a_random_input_needs_its_sizes(tract: Call, model: Path) -> None:
    result = tract(model, "run", "-R")
    assert result.exit_code == 1
    assert "--set B=1" in result.output
    assert tract(model, "run", "-R", "--set", "B=3").exit_code == 0


def test_outputs_and_steps_are_saved(tract: Call, model: Path, bundle: Path, tmp_path: Path) -> None:
    outputs, steps = tmp_path / "out.npz", tmp_path / "steps.npz"
    flags = ("--save-outputs", outputs, "--save-steps", steps, "--steps")
    result = tract(model, "-r", "reference", "run", "--input-from-bundle", bundle, *flags)
    assert result.exit_code == 0
    np.testing.assert_allclose(np.load(outputs)["y"], np.load(bundle)["y"], rtol=1e-6)
    assert len(np.load(steps).files) >= 3
    assert "EinSum" in result.output


def test_quiet_prints_nothing_and_checks_and_saves(tract: Call, model: Path, bundle: Path, tmp_path: Path) -> None:
    flags = ("-q", "--input-from-bundle", bundle, "--assert-output-bundle", bundle, "--approx", "approximate")
    result = tract(model, "run", *flags, "--dump", "--steps", "--json", "--save-outputs", tmp_path / "out.npz")
    assert (result.exit_code, result.output) == (0, "")
    assert np.load(tmp_path / "out.npz")["y"].shape == (2, 3)
    result = tract(model, "run", "--quiet", "--input-from-bundle", bundle, "--assert-output", "y:1,1,f32=2")
    assert result.exit_code == 1
    assert "y" in result.output


def test_json(tract: Call, model: Path, bundle: Path) -> None:
    content = json.loads(tract(model, "run", "--input-from-bundle", bundle, "--json").output)
    assert content["y"]["fact"] == "2,3,f32"


def test_a_bundle_with_pickles_is_refused(tract: Call, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, x=np.array([object()]))
    result = tract(model, "run", "--input-from-bundle", path)
    assert result.exit_code == 1
    assert "an array in it holds Python objects, which are not read" in result.output
    assert "allow_pickle" not in result.output


def test_floats_of_another_type_are_taken_where_that_is_allowed(tract: Call, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "wide.npz"
    np.savez(path, x=np.ones((2, 4)))
    refused = tract(model, "run", "--input-from-bundle", path)
    assert refused.exit_code == 1
    assert "input is f64" in refused.output
    assert tract(model, "run", "--input-from-bundle", path, "--allow-float-casts").exit_code == 0
    wanted = np.ones((2, 4)) @ WEIGHTS + 1
    for off, status in ((0, 0), (1, 1)):
        np.savez(path, x=np.ones((2, 4)), y=wanted + off)
        flags = ("--assert-output-bundle", path, "--allow-float-casts", "--approx", "approximate")
        assert tract(model, "run", "--input-from-bundle", path, *flags).exit_code == status
    np.savez(path, x=np.ones((2, 4), np.int64))
    assert tract(model, "run", "--input-from-bundle", path, "--allow-float-casts").exit_code == 1


def test_floats_that_are_not_sane_are_named(tract: Call, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "nan.npz"
    np.savez(path, x=np.full((1, 4), np.nan, np.float32))
    result = tract(model, "run", "--input-from-bundle", path, "--assert-sane-floats")
    assert result.exit_code == 1
    assert "not finite" in result.output


def test_bench(tract: Call, model: Path) -> None:
    figures = json.loads(tract(model, "bench", "--set", "B=2", "--max-loops", 3, "--json").output)
    assert figures["iterations"] == 3
    assert figures["fastest_ms"] <= figures["median_ms"] <= figures["slowest_ms"]


def test_the_lists(tract: Call) -> None:
    assert "EinSum" in tract("list-ops").output
    assert "reference" in tract("list-runtimes").output
    transforms = json.loads(tract("list-transforms", "--json").output)
    assert {"set_symbols", "float_precision"} <= {transform["name"] for transform in transforms}


def test_transforms(tract: Call, model: Path) -> None:
    assert "4,3,f32" in tract(model, "-t", "set_symbols(values: {B: 4})").output
    assert "4,3,f32" in tract(model, "-t", '{"name": "set-symbols", "values": {"B": 4}}').output
    half = tract(model, "-t", "f32_to_f16", "-s").output
    assert "input 0: x  B,4,f16" in half
    assert "output 0: y  B,3,f16" in half
    kept = tract(model, "-t", "f32_to_f16(keep_io_types: true)").output
    assert "B,4,f32" in kept
    assert "output 0: y  B,3,f32" in kept
    assert "B,3,f16" in kept
    result = tract(model, "-t", "nonsense")
    assert result.exit_code == 1
    assert "set_symbols" in result.output


def test_sizes_come_from_the_bundle_and_must_agree_with_the_flags(tract: Call, model: Path, bundle: Path) -> None:
    assert tract(model, "run", "--input-from-npz", bundle, "--set", "B=2").exit_code == 0
    result = tract(model, "run", "--input-from-npz", bundle, "--set", "B=5")
    assert result.exit_code == 1
    assert "axis 0 has size 2" in result.output
    assert "B is 5" in result.output


def test_a_setting_of_a_symbol_that_no_input_has(tract: Call, model: Path) -> None:
    result = tract(model, "run", "-R", "--set", "Q=1")
    assert result.exit_code == 1
    assert "no input has a symbol Q; there are: B" in result.output


def test_a_setting_may_use_an_earlier_one(tract: Call, model: Path) -> None:
    assert "6,3,f32" in tract(model, "run", "-R", "--set", "N=3", "--set", "B=2*N").output


@pytest.mark.parametrize("name", ["dump", "bench", "compare"])
def test_values_that_are_asserted_are_checked_by_every_subcommand(tract: Call, model: Path, name: str) -> None:
    flags = ["-i", "x:1,4,f32", name, "-R", "--random-range", "0..0.0000001", "--approx", "approximate"]
    flags += {"bench": ["--max-loops", "2"], "compare": ["--twice"], "dump": ["-q"]}[name]
    assert tract(model, *flags, "--assert-output", "1,3,f32=1,1,1").exit_code == 0
    failed = tract(model, *flags, "--assert-output", "1,3,f32=1,2,1")
    assert failed.exit_code == 1
    assert "output 'y': 1 of 3 elements differ" in failed.output


def test_json_without_numbers_that_json_has_not(tract: Call, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "nan.npz"
    np.savez(path, x=np.array([[np.nan, 0, 0, 0]], np.float32))
    text = tract(model, "run", "--input-from-npz", path, "--json").output
    content = json.loads(text, parse_constant=pytest.fail)
    assert content["y"]["values"][0][0] in ("nan", 1.0)


def test_a_file_that_cannot_be_written(tract: Call, model: Path, tmp_path: Path) -> None:
    result = tract(model, "run", "-R", "--set", "B=1", "--save-outputs", tmp_path / "absent" / "out.npz")
    assert result.exit_code == 1
    assert "cannot be written" in result.output
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("flag", ["--save-outputs", "--save-outputs-npz", "--save-steps"])
def test_only_regular_files_are_written_over(tract: Call, model: Path, tmp_path: Path, flag: str) -> None:
    (tmp_path / "link.npz").symlink_to("elsewhere.npz")
    run = ("run", "-R", "--set", "B=1", flag)
    result = tract(model, *run, tmp_path / "link.npz")
    assert result.exit_code == 1
    assert "link.npz: it is a link, which is not written over" in result.output
    assert "it is a device" in tract(model, *run, "/dev/null").output
    assert (tmp_path / "link.npz").is_symlink()
    assert not (tmp_path / "elsewhere.npz").exists()


@pytest.mark.parametrize("name", ["file", "allow_pickle", "x.npy", "a/b:0", "../y", "arr_0"])
def test_tensors_of_any_name_are_saved_and_read(tract: Call, tmp_path: Path, name: str) -> None:
    values = [helper.make_tensor_value_info(one, TensorProto.STRING, [3]) for one in ("x", name, "f16")]
    nodes = [
        helper.make_node("Identity", ["x"], [name]),
        helper.make_node("Cast", ["n"], ["f16"], to=TensorProto.BFLOAT16),
    ]
    values[2] = helper.make_tensor_value_info("f16", TensorProto.BFLOAT16, [2])
    number = helper.make_tensor_value_info("n", TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, "g", [values[0], number], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    given, saved = tmp_path / "given.npz", tmp_path / "saved.npz"
    np.savez(given, x=np.array(["é", "", "b\n"]), n=np.array([1.5, -2], np.float32))
    run = (tmp_path / "m.onnx", "run", "--input-from-npz", given)
    assert tract(*run, "--save-outputs", saved).exit_code == 0
    assert tract(*run, "--assert-output-bundle", saved).exit_code == 0
    np.savez(given, x=np.array(["é", "", "c\n"]), n=np.array([1.5, -3], np.float32))
    failed = tract(*run, "--assert-output-bundle", saved)
    assert failed.exit_code == 1
    assert f"output {name!r}: 1 of 3 elements differ" in failed.output
    assert "output 'f16': 1 of 2 elements differ" in failed.output


def test_what_was_assumed_must_hold(tract: Call, model: Path) -> None:
    """What was simplified under an assumption would compute something else."""
    assert tract(model, "--assert", "B>=3", "run", "-R", "--set", "B=3").exit_code == 0
    result = tract(model, "--assert", "B>=3", "run", "-R", "--set", "B=2")
    assert result.exit_code == 1
    assert "B>=3 does not hold for B=2" in result.output


def test_inputs_from_a_file_that_is_no_bundle(tract: Call, model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    for path in (tmp_path / "x.npy", model):
        result = tract(model, "run", "--input-from-npz", path)
        assert result.exit_code == 1
        assert f"{path.name}: it is no .npz file" in result.output
        assert "numpy.savez" in result.output


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_runs(tract: Call, model: Path, bundle: Path, stage: str) -> None:
    """Before typing, the model is wired as it is at that point: nothing is simplified yet."""
    flags = ("--input-from-npz", bundle)
    asserted = (*flags, "--assert-output-bundle", bundle, "--approx", "approximate", "--assert-output-fact", "B,3,f32")
    result = tract(model, "--pass", stage, "run", *asserted, "--steps")
    assert result.exit_code == 0, result.output
    assert ("Identity same" in result.output) == (stage in STAGES[:4])
    assert tract(model, "--pass", stage, "dump", *asserted).exit_code == 0
    assert tract(model, "--pass", stage, "bench", *asserted, "--max-loops", 1).exit_code == 0
    assert tract(model, "--pass", stage, "dump", "--profile", *flags, "--max-loops", 1).exit_code == 0
    wrong = tract(model, "--pass", stage, "dump", *flags, "--assert-output", "2,3,f32=0,0,0,0,0,0")
    assert wrong.exit_code == 1
    assert "output 'y': " in wrong.output
    if stage != "before-optimize":
        assert tract(model, "compare", "--stage", stage, *flags).exit_code == 0


def speech(folder: Path, size: object = "T") -> Path:
    """``y[t] = sum of x[t:t+3]``, from frames ``x: T,2,f32``, and ``z``, whose rank is 3, handed through."""
    frames = [helper.make_node("Slice", ["x", f"s{i}", f"e{i}", "axis"], [f"x{i}"]) for i in range(3)]
    nodes = [*frames, helper.make_node("Sum", ["x0", "x1", "x2"], ["y"]), helper.make_node("Neg", ["z"], ["n"])]
    indices = {"axis": [0]} | {f"s{i}": [i] for i in range(3)} | {"e0": [-2], "e1": [-1], "e2": [1 << 40]}
    constants = [helper.make_tensor(name, TensorProto.INT64, [1], value) for name, value in indices.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size, 2])]
    inputs.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 1, 1]))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yn"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    path = folder / "speech.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.mark.parametrize(("left", "right"), [(0, 0), (2, 0), (0, 3), (1, 1)])
@pytest.mark.parametrize("size", ["T", 7])
def test_frames_before_and_after(tract: Call, tmp_path: Path, left: int, right: int, size: object) -> None:
    """Copies of the first and the last one, also where the file says how many frames there are with them."""
    path, npz, saved = speech(tmp_path, size), tmp_path / "x.npz", tmp_path / "y.npz"
    frames = 7 - left - right
    x = np.random.default_rng(5).normal(size=(frames, 2)).astype(np.float32)
    np.savez(npz, x=x, z=np.ones((1, 1, 1), np.float32))
    flags = (path, "-i", f"x:{frames if size == 7 else 'T'},2,f32")
    flags += ("--edge-left-context", f"x={left}", "--edge-right-context", f"x={right}")
    for stage in ("load", "before-optimize"):
        result = tract(*flags, "--pass", stage, "run", "--input-from-npz", npz, "--save-outputs", saved)
        assert result.exit_code == 0, result.output
        padded = np.concatenate([x[:1]] * left + [x] + [x[-1:]] * right)
        np.testing.assert_allclose(np.load(saved)["y"], padded[:-2] + padded[1:-1] + padded[2:], rtol=1e-6)
    compared = tract(*flags, "compare", "--with", "onnxruntime", "--input-from-npz", npz)
    assert compared.exit_code == 0, compared.output
    shape = f"{frames},2,f32" if size == 7 else "T,2,f32"
    assert f"input 0: x  {shape}" in tract(*flags, "-s").output


def test_frames_of_inputs_that_have_none(tract: Call, tmp_path: Path) -> None:
    path = speech(tmp_path)
    result = tract(path, "--edge-left-context", "2")
    assert result.exit_code == 1
    assert "frames lie along the first axis of an input with one or two axes, this one is 1,1,1,f32" in result.output
    assert "--edge-left-context NAME=5" in result.output
    assert "no input 'q'; there are: x, z" in tract(path, "--edge-right-context", "q=2").output
    for text in ("-1", "two", "x=", "1.5"):
        refused = tract(path, "--edge-left-context", text)
        assert refused.exit_code == 2
        assert f"{text!r} is no number of frames" in refused.output


def failing(result: Result) -> str:
    """The message of a command that failed."""
    assert result.exit_code == 1
    return result.output


def test_bundles_with_nothing_to_assert(tract: Call, model: Path, bundle: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "empty.npz")
    np.savez(tmp_path / "inputs.npz", x=np.load(bundle)["x"])
    run = (model, "run", "--input-from-npz", bundle, "--allow-missing-outputs", "--assert-output-bundle")
    assert "no array in it names an output; it has nothing" in failing(tract(*run, tmp_path / "empty.npz"))
    assert "no array in it names an output; it has x" in failing(tract(*run, tmp_path / "inputs.npz"))


def test_arrays_that_name_no_output(tract: Call, model: Path, bundle: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "more.npz", **np.load(bundle), yy=np.zeros(3), product=np.zeros(3))
    result = tract(model, "run", "--input-from-npz", bundle, "--assert-output-bundle", tmp_path / "more.npz")
    message = failing(result)
    assert "no output is named 'yy', 'product'" in message
    assert "did you mean y?" in message
    assert "compare --npz" in message


def test_an_output_that_is_asserted_twice_is_checked_twice(tract: Call, model: Path, bundle: Path) -> None:
    run = (model, "run", "--input-from-npz", bundle, "--assert-output-bundle", bundle, "--approx", "approximate")
    assert tract(*run).exit_code == 0
    assert "output 'y': shape is [2, 3], wanted [1]" in failing(tract(*run, "--assert-output", "y:1,f32=1"))
    right = tract(model, "run", "--input-from-npz", bundle, "--json").stdout
    values = ",".join(str(one) for row in json.loads(right)["y"]["values"] for one in row)
    good, bad = f"y:2,3,f32={values}", "y:2,3,f32=0,0,0,0,0,0"
    for specs in ((good, bad), (bad, good)):
        flags = [part for spec in specs for part in ("--assert-output", spec)]
        assert "elements differ" in failing(tract(model, "run", "--input-from-npz", bundle, *flags))


@pytest.mark.parametrize("command", ["dump", "run", "bench", "compare"])
def test_operators_that_are_unknown(tract: Call, model: Path, command: str) -> None:
    line = [
        model,
        command,
        "-R",
        "--set",
        "B=1",
        *{"compare": ["--twice"], "bench": ["--max-loops", "1"]}.get(command, []),
    ]
    assert tract(*line, "--assert-op-count", "EinSum", 1, "--assert-op-count", "Conv", 0).exit_code == 0
    message = failing(tract(*line, "--assert-op-count", "Einsom", 0))
    assert "--assert-op-count: no operator is named 'Einsom'" in message
    assert "did you mean EinSum" in message
    assert "list-ops" in failing(tract(*line, "--assert-op-count", "Relu", 0))
    assert tract(*line, "--assert-op-only", "*,Conv").exit_code == 0
    assert "--assert-op-only: no operator is named 'Cnov*'" in failing(tract(*line, "--assert-op-only", "*,Cnov*"))


def test_facts_of_outputs_that_are_not_there(tract: Call, model: Path) -> None:
    facts = ("--assert-output-fact", "B,3,f32")
    assert tract(model, "run", "-R", "--set", "B=1", *facts).exit_code == 0
    assert "output 1 is missing" in failing(tract(model, "run", "-R", "--set", "B=1", *facts, *facts))


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"])
def test_floats_of_every_type_are_looked_at(tract: Call, tmp_path: Path, kind: str) -> None:
    """Also in an output that no node computes, and in a sequence."""
    number = getattr(TensorProto, kind)
    bad = helper.make_tensor("bad", number, [2], [1.0, float("nan")])
    for nodes, output in (
        ([helper.make_node("Identity", ["bad"], ["y"])], helper.make_tensor_value_info("y", number, [2])),
        ([helper.make_node("Expand", ["bad", "n"], ["y"])], helper.make_tensor_value_info("y", number, None)),
        (
            [helper.make_node("SequenceConstruct", ["bad"], ["y"])],
            helper.make_tensor_sequence_value_info("y", number, [2]),
        ),
    ):
        shape = helper.make_tensor_value_info("n", TensorProto.INT64, [1])
        graph = helper.make_graph(nodes, "g", [shape], [output], [bad])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
        run = (tmp_path / "m.onnx", "-i", "n:1,i64", "run", "-R", "--random-range", "2..3")
        assert tract(*run).exit_code == 0
        assert "not finite: y" in failing(tract(*run, "--assert-sane-floats"))


def test_a_bundle_without_inputs_is_no_reason_for_random_ones(tract: Call, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "typo.npz", X=np.ones((1, 4), np.float32))
    result = tract(model, "run", "-R", "--set", "B=1", "--input-from-npz", tmp_path / "typo.npz")
    assert "no array in it names an input; it has X" in failing(result)
