"""What the command does with a model that takes its signal in pulses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper, numpy_helper

Call = Callable[..., Result]

NUMBERS = np.random.default_rng(7)


def weight(*shape: int) -> Any:
    return (np.random.default_rng(len(shape)).normal(size=shape) / 2).astype(np.float32)


def saved(path: Path, nodes: list[Any], outputs: list[str], weights: dict[str, Any], fact: list[Any]) -> Path:
    graph = helper.make_graph(
        nodes,
        "streams",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, fact)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def causal(tmp_path: Path) -> Path:
    """Two convolutions, of which the second takes every other position, x: 1,2,S."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"], pads=[2, 2], strides=[2]),
    ]
    return saved(tmp_path / "causal.onnx", nodes, ["y"], {"w1": weight(2, 2, 3), "w2": weight(3, 2, 5)}, [1, 2, "S"])


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """One output that streams, and one behind two nodes that cannot."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=2),
        helper.make_node("ReduceMax", ["x"], ["m"], axes=[2]),
        helper.make_node("Sub", ["a", "m"], ["y"]),
        helper.make_node("Conv", ["x", "w"], ["z"], pads=[1, 1]),
    ]
    return saved(tmp_path / "blocked.onnx", nodes, ["y", "z"], {"w": weight(2, 2, 3)}, [1, 2, "S"])


def sheets(report: str) -> dict[str, Any]:
    return {sheet["title"].split(" ")[0]: sheet["rows"] for sheet in json.loads(report)["sheets"]}


def test_the_doctor_says_what_each_node_adds_to_the_delay(tract: Call, causal: Path) -> None:
    report = sheets(tract(causal, "--pulse", 8, "doctor", "--json").output)
    a, y = report["what"]
    assert (a["node"], a["operator"], a["adds"], a["looks ahead (input)"]) == ("a", "Conv", 1, 1)
    assert (y["node"], y["adds"], y["adds (input)"], y["delay"], y["delay (input)"]) == ("y", 0.5, 1, 1, 2)
    assert report["outputs"] == [
        {"output": "y", "axis": 2, "in a pulse": 4, "delay": 1, "delay (input)": 2, "length": "(S+1)/2"}
    ]
    kept = report["kept"]
    assert kept[-1] == {"node": "all", "operator": "", "elements": 2 * 2 + 2 * 3, "bytes": 40}


def test_the_doctor_prints_the_same_and_finds_that_it_runs(tract: Call, causal: Path) -> None:
    found = tract(causal, "--pulse", 8, "doctor")
    assert found.exit_code == 0
    assert "looks ahead (input)" in found.output
    assert "the end of the signal" in found.output


def test_the_doctor_names_all_nodes_that_cannot_be_streamed_at_once(tract: Call, blocked: Path) -> None:
    found = tract(blocked, "--pulse", 4, "doctor", "--json")
    assert found.exit_code == 1
    places = [place for finding in json.loads(found.output)["findings"] for place in finding["places"]]
    assert places == ["node 'a' (Softmax)", "node 'm' (Reduce)"]
    assert [row["output"] for row in sheets(found.output)["outputs"]] == ["z"]


def test_whoever_does_not_ask_the_doctor_is_told_all_of_it_too(tract: Call, blocked: Path) -> None:
    found = tract(blocked, "--pulse", 4)
    assert found.exit_code == 1
    assert "node 'a' (Softmax)" in found.output
    assert "node 'm' (Reduce)" in found.output


def test_a_symbol_that_no_input_has_is_answered_with_those_that_there_are(tract: Call, causal: Path) -> None:
    found = tract(causal, "--pulse", "T=8")
    assert found.exit_code == 1
    assert "no input has a size with the symbol T; the inputs are x: 1,2,S,f32" in found.output
    assert "--pulse S=8" in found.output


def test_a_model_without_symbols_is_told_how_to_get_one(tract: Call, tmp_path: Path) -> None:
    fixed = saved(tmp_path / "fixed.onnx", [helper.make_node("Relu", ["x"], ["y"])], ["y"], {}, [1, 2, 3])
    found = tract(fixed, "--pulse", 8)
    assert found.exit_code == 1
    assert "-i x:1,2,S,f32" in found.output
    assert tract(fixed, "-i", "x:1,2,S,f32", "--pulse", 8).exit_code == 0


@pytest.mark.parametrize("pulse", ["0", "-2"])
def test_a_pulse_has_at_least_one_position(tract: Call, causal: Path, pulse: str) -> None:
    found = tract(causal, "--pulse", pulse)
    assert found.exit_code == 1
    assert f"a pulse of {pulse} positions; wanted at least one" in found.output


def test_a_pulse_that_is_no_size_is_told_as_one(tract: Call, causal: Path) -> None:
    found = tract(causal, "--pulse", "S=")
    assert found.exit_code == 1
    assert "pulse: the pulse is ''" in found.output
    assert "as in '8', or 'S=8'" in found.output


def outputs(path: Path) -> Any:
    return np.load(path)["y"]


@pytest.mark.parametrize("length", [0, 1, 7, 8, 21, 64])
def test_a_run_goes_through_the_whole_signal(tract: Call, causal: Path, tmp_path: Path, length: int) -> None:
    signal = NUMBERS.normal(size=(1, 2, length)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=signal)
    given = "--input-from-npz", tmp_path / "in.npz", "--save-outputs"
    assert tract(causal, "run", *given, tmp_path / "whole.npz").exit_code == 0
    pulsed = tract(causal, "--pulse", 8, "run", *given, tmp_path / "pulses.npz")
    assert pulsed.exit_code == 0, pulsed.output
    whole, found = outputs(tmp_path / "whole.npz"), outputs(tmp_path / "pulses.npz")
    assert found.shape == (1, 3, (length + 1) // 2)
    np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-6)


def test_asserts_on_outputs_are_about_the_whole_signal(tract: Call, causal: Path, tmp_path: Path) -> None:
    inputs = "-R", "--set", "S=21", "--seed", 3
    assert tract(causal, "run", *inputs, "--save-outputs", tmp_path / "whole.npz").exit_code == 0
    wanted = "--assert-output-bundle", tmp_path / "whole.npz", "--approx", "approximate"
    for command in ("run", "bench", "dump"):
        more = ("--max-time", 1) if command == "bench" else ()
        assert tract(causal, "--pulse", 8, command, *inputs, *more, *wanted).exit_code == 0
        assert tract(causal, "--pulse", 8, command, *inputs[:-1], 4, *more, *wanted).exit_code == 1


def test_another_seed_gives_another_signal_and_the_same_the_same(tract: Call, causal: Path) -> None:
    one, again, other = (tract(causal, "--pulse", 8, "run", "-R", "--seed", seed).output for seed in (1, 1, 2))
    assert one == again != other


def test_a_pulse_that_is_not_full_can_be_left_out(tract: Call, causal: Path, tmp_path: Path) -> None:
    flags = "run", "-R", "--set", "S=21", "--save-outputs"
    assert tract(causal, "--pulse", 8, *flags, tmp_path / "all.npz").exit_code == 0
    assert tract(causal, "--pulse", 8, *flags, tmp_path / "full.npz", "--drop-partial-pulse").exit_code == 0
    assert outputs(tmp_path / "all.npz").shape[2] == 11
    assert outputs(tmp_path / "full.npz").shape[2] == 8


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_steps_are_shown_and_saved_turn_by_turn(tract: Call, causal: Path, tmp_path: Path, runtime: str) -> None:
    flags = "run", "-R", "--set", "S=17", "--steps", "--save-steps", tmp_path / "steps.npz"
    found = tract(causal, "--pulse", 8, "-r", runtime, *flags)
    assert found.exit_code == 0, found.output
    assert [line for line in found.output.splitlines() if line.startswith("turn ")] == ["turn 0", "turn 1", "turn 2"]
    with np.load(tmp_path / "steps.npz") as steps:
        late = np.concatenate([steps[f"turn_{turn}/y"] for turn in range(3)], 2)
        np.testing.assert_array_equal(late[:, :, 1:10], steps["y"])


def test_a_bench_says_how_fast_the_signal_goes_through(tract: Call, causal: Path) -> None:
    flags = "bench", "--max-loops", 3, "--sample-rate", 16000
    figures = json.loads(tract(causal, "--pulse", 8, *flags, "--json").output)
    assert figures["positions_in_a_pulse"] == 8
    assert figures["positions_per_s"] == pytest.approx(8e3 / figures["median_ms"])
    assert figures["times_real_time"] == pytest.approx(figures["positions_per_s"] / 16000)
    assert "as fast as real time" in tract(causal, "--pulse", 8, *flags).output
    assert "positions" not in tract(causal, "bench", "--set", "S=8", "--max-loops", 3).output


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("pulse", [2, 8])
def test_a_stream_is_compared_node_by_node_with_the_whole_signal(
    tract: Call, causal: Path, runtime: str, pulse: int
) -> None:
    found = tract(causal, "--pulse", pulse, "-r", runtime, "compare", "--stream", "--json")
    assert found.exit_code == 0, found.output
    report = json.loads(found.output)
    assert report["reference"] == "the whole signal"
    assert report["first"] is None
    assert {one["name"] for one in report["tensors"] if one["compared"]} == {"a", "b", "y"}


def test_the_first_tensor_that_differs_is_named(tract: Call, causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tract_pulse.ops.pad import PadState

    monkeypatch.setattr(PadState, "run", lambda *arguments: tuple(arguments[-1]))  # pads nothing: garbage stays
    found = tract(causal, "--pulse", 8, "-r", "reference", "compare", "--stream")
    assert found.exit_code == 1
    assert "differ from the whole signal" in found.output
    assert "the first is 'a', which Conv computes" in found.output
    assert "[0, 0, " in found.output


def test_tensors_in_which_positions_meet_are_said_not_to_be_compared(tract: Call, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Trilu", ["scores"], ["before"], upper=0),
        helper.make_node("Trilu", ["before", "far"], ["band"], upper=1),
        helper.make_node("MatMul", ["band", "x"], ["y"]),
    ]
    path = saved(tmp_path / "square.onnx", nodes, ["y"], {"far": np.array(-3)}, ["S", 4])
    found = tract(path, "--pulse", 4, "compare", "--stream")
    assert found.exit_code == 0, found.output
    assert "not compared, as a pulse has a window of their columns: scores, before, band" in found.output
    assert "not compared" not in tract(path, "--pulse", 4, "compare", "--stream", "--quiet").output


def test_there_must_be_two_models_to_compare(tract: Call, causal: Path) -> None:
    found = tract(causal, "compare", "--stream", "-R")
    assert found.exit_code == 1
    assert "here is only one model" in found.output
    assert "--pulse 8" in found.output


def test_a_runtime_that_shows_no_nodes_is_compared_all_the_same(
    tract: Call, causal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tract_core.cli.commands.compare_stream.ObservablePlan", type("NoPlanIsOne", (), {}))
    found = tract(causal, "--pulse", 8, "-r", "cpu", "compare", "--stream", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.output)["compared"] == 3


def test_a_model_over_pulses_is_cooked_and_runs_from_the_archive(tract: Call, causal: Path, tmp_path: Path) -> None:
    archive = tmp_path / "causal.nnef.tgz"
    cooked = tract(causal, "--pulse", 8, "--nnef-tract-pulse", "cook", "-o", archive, "--approx", "approximate")
    assert cooked.exit_code == 0, cooked.output
    inputs = "run", "-R", "--set", "S=21", "--save-outputs"
    assert tract(causal, *inputs, tmp_path / "whole.npz").exit_code == 0
    assert tract(archive, *inputs, tmp_path / "pulses.npz").exit_code == 0
    np.testing.assert_allclose(outputs(tmp_path / "pulses.npz"), outputs(tmp_path / "whole.npz"), rtol=1e-5, atol=1e-6)
    told = tract(archive, "doctor", "--json")
    assert told.exit_code == 0
    assert sheets(told.output)["outputs"] == [{"output": "y", "axis": 2, "delay": 1, "length": "(S+1)/2"}]
    assert tract(archive, "compare", "--against", "reference", "-R").exit_code == 0
    assert "takes pulses already" in tract(archive, "--pulse", 4).output
