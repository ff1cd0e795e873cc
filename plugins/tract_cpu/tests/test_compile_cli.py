"""``tract MODEL compile``: what is written, what is said, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result

from tract_core.cli.frame import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with a model of an open size."""
    graph = "(float[B,3] x) => (float[B,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }"
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> agraph {graph}')
    onnx.save(proto, tmp_path / "a-net.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tract(*words: str) -> Result:
    return CliRunner().invoke(app, ["a-net.onnx", *words], prog_name="tract")


def test_an_object_and_its_header_are_written(folder: Path) -> None:
    result = tract("--set", "B=4", "compile", "a-net.o")
    assert result.exit_code == 0, result.output
    size = (folder / "a-net.o").stat().st_size
    assert result.output.startswith(f"a-net.o: {size:,} bytes for native, and a-net.h\na_net_run works in ")
    assert "int32_t a_net_run(void *memory, const float *x, float *y);" in (folder / "a-net.h").read_text()


def test_sizes_that_are_open_are_arguments(folder: Path) -> None:
    result = tract("compile", "net.o")
    assert result.exit_code == 0, result.output
    assert "net_run works in as many bytes as net_memory(B) gives" in result.output
    assert "int32_t net_run(void *memory, int64_t B, const float *x, float *y);" in (folder / "net.h").read_text()
    assert json.loads(tract("compile", "net.o", "--json").output)["sizes"] == ["B"]
    assert "several_run_shared has steps with enough to do" in tract("compile", "several.o", "--threads", "2").output
    result = tract("compile", "net.wasm")
    assert result.exit_code == 0, result.output
    assert '["x"]: { shape: ["B", 3], array: Float32Array }' in (folder / "net.mjs").read_text()
    assert "run(given: Inputs, sizes: Sizes): Outputs;" in (folder / "net.d.mts").read_text()


def test_what_was_written_is_told_as_json(folder: Path) -> None:
    result = tract(
        "--set", "B=1", "compile", "o.obj", "--target", "aarch64-windows", "--name", "n", "--header", "h", "--json"
    )
    said = json.loads(result.output)
    assert said["files"] == {name: (folder / name).stat().st_size for name in ("o.obj", "h")}
    assert (said["target"], said["name"]) == ("aarch64-windows", "n")
    assert f"#define N_MEMORY {said['memory']} " in (folder / "h").read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="wants a compiler for C")
def test_a_shared_library_is_linked_where_a_compiler_is(folder: Path) -> None:
    assert tract("--set", "B=1", "compile", "net.so").exit_code == 0
    assert (folder / "net.so").read_bytes().startswith(b"\x7fELF")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "B=1", "compile", "a.txt"], "'a.txt' ends in '.txt'"),
        (["--set", "B=1", "compile", "a"], "'a' ends in nothing"),
        (["--set", "B=1", "compile", "a.o", "--target", "z80"], "there is no target 'z80'"),
        (["--set", "B=1", "compile", "a.o", "--name", "a b"], "'a b' is no name in C"),
        (["--set", "B=1", "compile", "a.so", "--target", "aarch64"], "for this machine only, not for aarch64"),
        (["--set", "B=1", "compile", "missing/a.o"], "missing"),
        (["--set", "B=1", "compile", "a.wasm", "--target", "aarch64"], "'a.wasm' is for wasm32, not for aarch64"),
        (["--set", "B=1", "compile", "a.tgz", "--target", "x86-64"], "'a.tgz' is for wasm32, not for x86-64"),
        (["--set", "B=1", "compile", "a.nnef.tgz"], "'a.nnef.tgz' names no package of npm"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(folder: Path, words: list[str], told: str) -> None:
    result = tract(*words)
    assert result.exit_code == 1
    assert told in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert [one.name for one in folder.iterdir()] == ["a-net.onnx"]


def test_without_a_compiler_there_is_an_object_still(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    result = tract("--set", "B=1", "compile", "net.so")
    assert result.exit_code == 1
    assert "no compiler links here: none of cc, gcc, clang was found" in " ".join(result.output.split())
    assert tract("--set", "B=1", "compile", "net.o").exit_code == 0


def test_a_module_for_the_web_comes_with_what_loads_it(folder: Path) -> None:
    result = tract("--set", "B=2", "compile", "net.wasm")
    assert result.exit_code == 0, result.output
    assert {one.name for one in folder.iterdir()} == {"a-net.onnx", "net.wasm", "net.mjs", "net.d.mts"}
    assert (folder / "net.wasm").read_bytes().startswith(b"\0asm\1\0\0\0")
    assert '["x"]: { shape: [2, 3], size: 6, array: Float32Array }' in (folder / "net.mjs").read_text()
    assert '"y": Float32Array; // [2, 2]' in (folder / "net.d.mts").read_text()


def test_a_module_may_be_for_newer_browsers(folder: Path) -> None:
    result = tract("--set", "B=2", "compile", "net.wasm", "--target", "wasm32+relaxed-simd", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["target"] == "wasm32+relaxed-simd"
