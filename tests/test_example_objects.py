"""The programs of ``examples/objects``, built with an object that is compiled here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tract_core as tract
from tract_core.cli.frame import app

EXAMPLES = Path(__file__).parents[1] / "examples"
DIGITS = EXAMPLES / "digits" / "digits.onnx"

BUILD = {
    "cc": ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-I.", str(EXAMPLES / "objects" / "digits.c")],
    "rustc": ["rustc", "--edition=2021", "-D", "warnings", "-O", str(EXAMPLES / "objects" / "digits.rs")],
}
LINK = {"cc": ["digits.o"], "rustc": ["-C", "link-arg=digits.o"]}


@pytest.mark.parametrize("compiler", BUILD)
def test_a_program_says_what_the_runtime_says(compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = shutil.which(compiler) and subprocess.run([compiler, "--version"], check=False, capture_output=True)
    if not works or works.returncode:
        pytest.skip(f"{compiler} is not there")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [str(DIGITS), "--set", "B=1", "compile", "digits.o"], prog_name="tract")
    assert result.exit_code == 0, result.output
    header = (tmp_path / "digits.h").read_text()
    assert int(header.split("DIGITS_MEMORY ")[1].split()[0]) <= 1 << 20  # what the program in Rust gives
    subprocess.run([*BUILD[compiler], *LINK[compiler], "-o", "digits"], check=True)
    images = subprocess.run(
        [sys.executable, str(EXAMPLES / "objects" / "images.py"), "30"], check=True, capture_output=True, text=True
    ).stdout
    said = subprocess.run(["./digits"], input=images, check=True, capture_output=True, text=True).stdout
    found = np.loadtxt(said.splitlines())
    pixels = np.loadtxt(images.splitlines(), dtype=np.float32).reshape(-1, 1, 8, 8)
    wanted = tract.onnx().load(DIGITS).into_model().into_runnable("cpu").run([pixels])[0].numpy()
    np.testing.assert_array_equal(found[:, 0], wanted.argmax(1))
    np.testing.assert_allclose(found[:, 1], wanted.max(1), atol=1e-5)


@pytest.mark.skipif(shutil.which("cc") is None, reason="wants a compiler for C")
def test_threads_of_a_program_say_what_the_runtime_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs, the second one of few images."""
    monkeypatch.chdir(tmp_path)
    arguments = [str(DIGITS), "--set", "B=256", "compile", "digits.o", "--threads", "4"]
    result = CliRunner().invoke(app, arguments, prog_name="tract")
    assert result.exit_code == 0, result.output
    steps = int(result.output.split("digits_run_shared has ")[1].split()[0])
    assert steps > 0
    source = str(EXAMPLES / "objects" / "threads.c")
    build = [one for one in BUILD["cc"] if not one.endswith(".c")]
    subprocess.run([*build, source, *LINK["cc"], "-pthread", "-o", "threads"], check=True)
    pixels = np.random.default_rng(0).random((300, 1, 8, 8), "f4")
    text = "\n".join(" ".join(f"{one:.9g}" for one in image.ravel()) for image in pixels)
    done = subprocess.run(["./threads"], input=text, check=True, capture_output=True, text=True)
    assert done.stderr == f"{2 * steps} steps were shared\n"
    wanted = tract.onnx().load(DIGITS).into_model().into_runnable("cpu").run([pixels])[0].numpy()
    found = np.loadtxt(done.stdout.splitlines())
    np.testing.assert_array_equal(found[:, 0], wanted.argmax(1))
    np.testing.assert_allclose(found[:, 1], wanted.max(1), atol=1e-5)
