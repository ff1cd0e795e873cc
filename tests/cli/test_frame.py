from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tract_core.cli.frame import app

Call = Callable[..., Result]


def test_help_names_every_subcommand_and_gives_examples(tract: Call) -> None:
    result = tract("--help")
    assert result.exit_code == 0
    for name in ("dump", "run", "bench", "compare", "list-ops", "list-runtimes", "list-transforms", "plugins"):
        assert name in result.output
    assert "tract model.onnx" in result.output


def test_no_arguments_shows_the_help(tract: Call) -> None:
    assert tract().exit_code == 0
    assert "Usage: tract" in tract().output


@pytest.mark.parametrize("name", ["dump", "run", "bench", "compare"])
def test_every_model_command_has_help(tract: Call, model: Path, name: str) -> None:
    result = tract(model, name, "--help")
    assert result.exit_code == 0
    assert "MODEL" in result.output


def test_global_flags_stand_before_or_after_the_model(tract: Call, model: Path) -> None:
    before = tract("--pass", "type", model, "dump")
    after = tract(model, "--pass", "type", "dump")
    attached = tract(model, "--pass=type", "dump")
    assert before.exit_code == 0
    assert before.output == after.output == attached.output


def test_without_a_subcommand_the_graph_is_dumped(tract: Call, model: Path) -> None:
    assert tract(model).output == tract(model, "dump").output
    assert tract(model, "--info").output == tract(model, "dump", "--info").output


def test_a_model_command_without_a_model_says_how_to_write_it(tract: Call) -> None:
    result = tract("dump")
    assert result.exit_code == 2
    assert "tract MODEL dump" in result.output


def test_a_misspelt_subcommand_is_guessed(tract: Call, model: Path) -> None:
    result = tract(model, "dmp")
    assert result.exit_code == 2
    assert "did you mean 'dump'" in result.output


def test_a_missing_file_is_one_message(tract: Call, tmp_path: Path) -> None:
    result = tract(tmp_path / "absent.onnx")
    assert result.exit_code == 1
    assert "absent.onnx: there is no such file" in result.output
    assert "doctor" not in result.output
    assert "is empty" in tract("").output


def test_an_unknown_ending_lists_the_formats(tract: Call, tmp_path: Path) -> None:
    path = tmp_path / "model.xyz"
    path.touch()
    result = tract(path)
    assert result.exit_code == 1
    assert "*.xyz" in result.output
    assert "onnx" in result.output
    assert "--format" in result.output


def test_a_file_that_is_no_model_is_named_for_what_it_is(tract: Call, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"PK\x03\x04" + bytes(26) + b"archive/data.pkl")
    result = tract(path)
    assert result.exit_code == 1
    assert "it is a PyTorch file, and no installed format takes it" in result.output
    assert "torch.onnx.export" in result.output
    (tmp_path / "model.onnx.data").write_bytes(bytes(range(1, 200)))
    assert "give the path of the model itself, as 'model.onnx'" in tract(tmp_path / "model.onnx.data").output


def test_a_name_without_an_ending_is_told_so(tract: Call, model: Path) -> None:
    found = tract(model, "save", "folder")
    assert found.exit_code == 1
    assert "folder: no installed format writes files whose names have no ending; installed: " in found.stderr


def test_a_corrupt_file_is_one_message(tract: Call, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\xff" * 100)
    result = tract(path)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")


def test_debug_shows_the_traceback(model: Path) -> None:
    arguments = [sys.executable, "-m", "tract_core", "--debug", str(model), "-i", "nope:1,4,f32"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "no input 'nope'; there are: x" in result.stderr


def test_a_time_limit_exits_with_124(model: Path) -> None:
    endless = ["bench", "--set", "B=1", "--max-loops", "1000000000", "--max-time", "1e6"]
    arguments = [sys.executable, "-m", "tract_core", str(model), "--timeout", "0.5", *endless]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 124
    assert "--timeout" in result.stderr


@pytest.mark.parametrize("longest", ["inf", "1e300", "9e9", "1e10", str(threading.TIMEOUT_MAX)])
def test_a_time_limit_that_nobody_can_wait_for_is_none(model: Path, longest: str) -> None:
    line = [sys.executable, "-m", "tract_core", str(model), "--timeout", longest, "--limit", "deadline_s=inf"]
    result = subprocess.run([*line, "run", "-R", "--set", "B=1"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("no_time", ["nan", "-nan", "0", "-1", "-inf", "soon", ""])
def test_what_is_no_time_limit(tract: Call, model: Path, no_time: str) -> None:
    refused = tract(model, "--timeout", no_time, "-q")
    assert refused.exit_code == 2
    assert "'--timeout'" in refused.output


def test_limits(tract: Call, model: Path) -> None:
    assert tract(model, "--limit", "max_nodes=1e5", "--limit", "deadline_s=60", "-q").exit_code == 0
    refused = tract(model, "--limit", "max_nodes=0", "-q")
    assert refused.exit_code == 1
    assert "there are more than 0 nodes" in refused.output
    late = tract(model, "--limit", "run_deadline_s=0", "run", "-R", "--set", "B=2")
    assert late.exit_code == 1
    assert "the run takes longer than 0 seconds" in late.output
    told = tract(model, "--limit", "max_bytes=10", "doctor")
    assert told.exit_code == 1
    assert "10 are allowed" in told.output


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("max_size=3", "with one of the names deadline_s, max_bytes, "),
        ("max_nodes", "is not of the form NAME=NUMBER"),
        ("max_nodes=many", "'many' is no number that is 0 or more"),
        ("max_nodes=-1", "'-1' is no number that is 0 or more"),
        ("deadline_s=nan", "'nan' is no number that is 0 or more"),
        ("max_nodes=2.5", "it is counted in whole numbers"),
        ("max_bytes=inf", "it is counted in whole numbers"),
    ],
)
def test_limits_that_make_no_sense(tract: Call, model: Path, limit: str, message: str) -> None:
    result = tract(model, "--limit", limit, "-q")
    assert result.exit_code == 2
    assert message in result.output


def test_the_version(tract: Call) -> None:
    assert tract("--version").output.startswith("tract ")


def test_unknown_runtime(tract: Call, model: Path) -> None:
    result = tract(model, "-r", "quantum", "run", "-R", "--set", "B=1")
    assert result.exit_code == 1
    assert "quantum" in result.output
    assert "reference" in result.output


def test_global_flags_may_stand_behind_the_subcommand(tract: Call, model: Path) -> None:
    before = tract(model, "-r", "reference", "--pass", "type", "dump", "--info")
    assert tract(model, "dump", "-r", "reference", "--info", "--pass=type").output == before.output
    assert tract(model, "dump", "-qO").exit_code == 0
    assert "'quantum' is not installed" in tract(model, "run", "-R", "-r", "quantum").output


def test_behind_a_subcommand_a_flag_that_both_have_is_its_own(tract: Call, model: Path) -> None:
    assert "2,3,f32" in tract(model, "run", "-R", "--set", "B=2").output
    assert "B,3,f32" in tract(model, "dump", "--set", "B=2").output
    assert tract(model, "compare", "--twice", "-R", "--set", "B=1", "--runtime", "reference").exit_code == 0


def test_what_follows_a_flag_is_its_value(tract: Call, model: Path) -> None:
    assert "no node fits" in tract(model, "--node-name", "run").output
    assert "no node fits" in tract(model, "dump", "--node-name", "-O").output


def test_a_flag_of_a_subcommand_before_it_says_where_it_stands(tract: Call, model: Path) -> None:
    result = tract(model, "--steps", "run")
    assert result.exit_code == 2
    assert "as in 'tract MODEL run --steps'" in result.output


def test_global_flags_may_stand_among_those_of_the_subcommand_that_was_not_named(tract: Call, model: Path) -> None:
    assert tract(model, "--info", "--pass", "type").output == tract(model, "--pass", "type", "dump", "--info").output
    assert "5,3,f32" in tract(model, "--cost", "--set", "B=5").output


def test_a_flag_without_its_value(tract: Call, model: Path) -> None:
    for line in (("-i",), (model, "--timeout"), ("--pass",)):
        result = tract(*line)
        assert result.exit_code == 2
        assert f"{line[-1]} wants a value" in result.output


def test_flags_without_a_model(tract: Call) -> None:
    assert tract("--json").exit_code == 2
    assert tract("-O").exit_code == 2


def test_a_misspelt_subcommand_in_the_place_of_the_model(tract: Call) -> None:
    result = tract("lst-ops")
    assert result.exit_code == 2
    assert "did you mean 'list-ops'" in result.output


def test_a_misspelt_file_is_guessed(tract: Call, model: Path) -> None:
    result = tract(model.with_name("smal.onnx"))
    assert result.exit_code == 1
    assert f"did you mean {str(model)!r}?" in result.output


def test_a_folder_lists_the_models_in_it(tract: Call, model: Path) -> None:
    for name in ("deep/er/other.ONNX", ".hidden/no.onnx", "b.txt"):
        path = model.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    result = tract(model.parent)
    assert result.exit_code == 1
    assert f"  {model}  {model.stat().st_size} bytes\n" in result.output
    assert f"  {model.parent / 'deep' / 'er' / 'other.ONNX'}  0 bytes\n" in result.output
    assert "no.onnx" not in result.output
    assert "b.txt" not in result.output
    for number in range(30):
        (model.parent / f"{number}.onnx").touch()
    assert "and 12 more" in tract(model.parent, "run").output


def test_a_folder_without_a_model(tract: Call, tmp_path: Path) -> None:
    assert "nor any other model" in tract(tmp_path).output


def test_a_folder_with_a_model(tract: Call, model: Path) -> None:
    names = "model.safetensors, graph.nnef, saved_model.pb, model.gguf, model.safetensors.index.json"
    names += ", model.crvo, model.nnef.tgz, model.onnx, model.tflite, model.pb"
    assert f"none of {names}" in tract(model.parent).output
    model = model.rename(model.with_name("model.onnx"))
    assert tract(model.parent).exit_code == 0
    model.with_name("model.tar").write_bytes(model.read_bytes())
    assert f"several of {names}" in tract(model.parent).output


def test_a_runtime_that_is_not_there_is_told_though_nothing_runs(tract: Call, model: Path) -> None:
    result = tract(model, "-r", "cpux", "dump")
    assert result.exit_code == 1
    assert "'cpux' is not installed" in result.output


@pytest.mark.parametrize("line", ["run --help", "--help run", "help run", "m.onnx -h run", "-r cpu --help run"])
def test_help_of_a_subcommand_needs_no_model(tract: Call, line: str) -> None:
    result = tract(*line.split())
    assert result.exit_code == 0
    assert "MODEL run [FLAGS]" in result.output


def test_help_is_a_word_too(tract: Call) -> None:
    assert tract("help").output == tract("--help").output
    assert "Usage: tract list-ops" in tract("help", "list-ops").output
    wrong = tract("help", "rnu")
    assert wrong.exit_code == 2
    assert "did you mean 'run'" in wrong.output


@pytest.mark.parametrize("spec", ["1,4,f33", "1,4,float32"])
def test_a_misspelt_element_type_is_no_size(tract: Call, model: Path, spec: str) -> None:
    result = tract(model, "-i", spec)
    assert result.exit_code == 2
    assert "is no element type" in result.output


def test_an_input_keeps_its_element_type(tract: Call, model: Path) -> None:
    assert "7,3,f32" in tract(model, "-i", "7,4").output


def run_in_shell(line: str) -> subprocess.CompletedProcess[str]:
    tract = f"{sys.executable} -m tract_core"
    return subprocess.run(
        ["bash", "-c", line.replace("TRACT", tract)], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_reader_that_leaves_early_changes_nothing(model: Path) -> None:
    early = run_in_shell(f"TRACT {model} dump --const --info | true; exit ${{PIPESTATUS[0]}}")
    assert (early.returncode, early.stderr) == (0, "")
    failed = run_in_shell(f"TRACT {model} dump --assert-op-count EinSum 7 | true; exit ${{PIPESTATUS[0]}}")
    assert failed.returncode == 1
    assert "not 7" in failed.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_an_error(model: Path) -> None:
    result = run_in_shell(f"TRACT {model} > /dev/full")
    assert (result.returncode, result.stderr) == (1, "Error: No space left on device\n")


def test_nothing_is_cut_short_where_no_terminal_is(model: Path) -> None:
    result = run_in_shell(f"COLUMNS=30 TRACT {model}")
    assert all(line == line.rstrip() for line in result.stdout.splitlines())
    assert any(len(line) > 40 for line in result.stdout.splitlines())
    assert "\x1b" not in result.stdout


def test_ctrl_c_while_the_line_is_parsed_is_told_as_later(tract: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "parse_args", interrupted)
    found = tract("m.onnx")
    assert (found.exit_code, found.stderr.strip()) == (130, "interrupted")
