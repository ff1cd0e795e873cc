from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

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
    assert "absent.onnx: no such file" in result.output


def test_an_unknown_ending_lists_the_formats(tract: Call, tmp_path: Path) -> None:
    path = tmp_path / "model.xyz"
    path.touch()
    result = tract(path)
    assert result.exit_code == 1
    assert "*.xyz" in result.output
    assert "onnx" in result.output
    assert "--format" in result.output


def test_a_corrupt_file_is_one_message(tract: Call, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\xff" * 100)
    result = tract(path)
    assert result.exit_code == 1
    assert result.output.startswith("error: ")


def test_debug_shows_the_traceback(model: Path) -> None:
    arguments = [sys.executable, "-m", "tract_core", "--debug", str(model), "-i", "nope:1,4,f32"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "no input 'nope'; there are: x" in result.stderr


def test_a_time_limit_exits_with_124(model: Path) -> None:
    arguments = [sys.executable, "-m", "tract_core", str(model), "--timeout", "0.5", "bench", "--set", "B=1"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 124
    assert "--timeout" in result.stderr


def test_the_version(tract: Call) -> None:
    assert tract("--version").output.startswith("tract ")


def test_unknown_runtime(tract: Call, model: Path) -> None:
    result = tract(model, "-r", "quantum", "run", "-R", "--set", "B=1")
    assert result.exit_code == 1
    assert "quantum" in result.output
    assert "reference" in result.output
