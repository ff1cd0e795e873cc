from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from tract_core.cli.frame import app
from tract_core.plugins import default_registry

WITH_TORCH = "pt2" in default_registry().formats()
"""Whether the distribution is installed that needs PyTorch, which not everybody has."""


def offers(*line: object) -> list[str]:
    """What is offered for the last word of a line; a shell's own files are ``FILES``."""
    *done, incomplete = map(str, line)
    items = ShellComplete(app, {}, "tract", "_TRACT_COMPLETE").get_completions(done, incomplete)
    return ["FILES" if item.type == "file" else item.value for item in items]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without models on the way."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def test_before_the_model() -> None:
    core = ["list-ops", "list-runtimes", "list-transforms", "plugins", "init", "help"]
    assert offers("") == [
        *core,
        "compiled",
        "hwbench",
        "inferers",
        "cache",
        *(["torch-export"] if WITH_TORCH else []),
        "FILES",
    ]
    assert offers("list-o") == ["list-ops", "FILES"]
    assert "--runtime" in offers("--")


def test_in_a_group() -> None:
    assert offers("inferers", "be") == ["benchmark"]
    assert offers("inferers", "api", "--j") == ["--json"]
    assert offers("inferers", "run", "--runtime", "ref") == ["reference"]
    assert offers("inferers", "api", "") == ["FILES"]


def test_after_the_model(model: Path) -> None:
    assert {"dump", "run", "bench", "compare", "doctor"} <= set(offers(model, ""))
    assert "plugins" not in offers(model, "")
    assert offers(model, "do") == ["doctor"]
    assert offers(model, "--pass", "load", "do") == ["doctor"]
    assert offers("--pass", "load", model, "do") == ["doctor"]


def test_flags(model: Path) -> None:
    assert offers(model, "--onnx-ignore-v") == ["--onnx-ignore-value-info"]
    assert {"--const", "--constantize"} <= set(offers(model, "--cons"))
    assert offers(model, "run", "--save-o") == ["--save-outputs-npz", "--save-outputs"]
    assert offers(model, "run", "--stag") == []
    assert offers(model, "run", "--machine") == ["--machine-friendly"]


def test_values(model: Path) -> None:
    assert offers(model, "--pass", "de") == ["declutter"]
    assert offers("--pass", "de") == ["declutter"]
    assert offers(model, "-r", "ref") == ["reference"]
    assert offers(model, "run", "-r", "ref") == ["reference"]
    assert offers("help", "do") == ["doctor"]
    assert offers(model, "-t", "f32") == ["f32_to_f16"]
    formats = {"crvo", "gguf", "huggingface", "nnef", "onnx", "tensorflow", "tflite", *(["pt2"] if WITH_TORCH else [])}
    assert set(offers("-f", "")) == formats
    assert offers(model, "compare", "--with", "o") == ["onnxruntime", "openvino"]
    assert offers(model, "compare", "--against", "d") == ["default"]
    assert offers(model, "run", "--approx", "s") == ["super"]
    assert offers(model, "run", "--input-from-npz", "") == ["FILES"]


def test_models_and_folders(model: Path) -> None:
    (model.parent / "more").mkdir()
    (model.parent / "notes.txt").touch()
    (model.parent / ".hidden").mkdir()
    here = f"{model.parent}/"
    assert offers(here) == [f"{here}empty/", f"{here}more/", str(model)]
    assert offers(f"{here}m") == [f"{here}more/"]
    assert offers(f"{here}.h") == [f"{here}.hidden/"]
    assert offers(f"{here}notes") == ["FILES"]


def test_symbols_and_inputs(model: Path) -> None:
    assert offers(model, "--set", "") == ["B="]
    assert offers(model, "run", "--set", "B") == ["B="]
    assert offers(model, "run", "--set", "C") == []
    assert offers(model, "run", "-i", "") == ["x:"]
    assert offers("--set", "") == []
    assert offers(model, "--output-node", "") == ["w", "one", "x", "product", "same", "sum", "y"]
    assert offers(model, "dump", "--node-name", "s") == ["same", "sum"]
    assert offers(model, "dump", "--op-name", "Mat") == ["MatMul"]
    model.write_bytes(b"\xff")
    assert offers(model, "--set", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str) -> None:
    environment = {**os.environ, "_TRACT_COMPLETE": f"{shell}_source"}
    tract = Path(sys.executable).with_name("tract")
    result = subprocess.run([tract], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "tract" in result.stdout
    assert f"_TRACT_COMPLETE={shell}_complete" in result.stdout
