"""What is wrong whatever the model is: a usage error, in words of its own; and hints in the words of the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

from tract_core.cli.frame import app
from tract_core.plugins.builtin import tract_commands
from tract_core.plugins.installing import is_installed

Call = Callable[..., Result]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run -R --random-range 5..1", "--random-range '5..1' is empty: 5 is more than 1"),
        ("run -R --random-range 1..nan", "both ends must be finite"),
        ("run -R --random-range 5", "is not of the form [NAME=]A..B"),
        ("run -R --set B=two", "--set B=two: two is no number"),
        ("run -R --set B=1.5", "--set B=1.5"),
        ("run -R --set B=-3", "a size is not negative"),
        ("run -R --set N=3 --set B=N-5", "a size is not negative, and this is -2"),
        ("run -R --set B", "is not of the form SYM=VALUE"),
        ("--set B=-1", "a size is not negative"),
        ("--set =3", "is not of the form SYM=VALUE"),
        ("--set B=2*", "--set B=2*"),
        ("-i 1x3x32x32", "sizes have commas between them, as '1x3x32x32' has not\n  hint: write '1,3,32,32'"),
        ("-i x:1x3x32x32,f32", "as '1x3x32x32,f32' has not\n  hint: write '1,3,32,32,f32'"),
        ("-i 1,-4,f32", "size -4"),
        ("-i 1,,4,f32", "has an empty entry"),
        ("-i x=absent.npy", "there is no file 'absent.npy'"),
        ("--override-fact 1,4,f32", "names no tensor"),
        ("--override-fact sum:1*,f32", "--override-fact 'sum:1*,f32' is no fact"),
        ("--assert B", "--assert 'B'"),
        ("run --assert-output 3", "--assert-output '3' is not [NAME:]FACT=VALUES"),
        ("run --assert-output 1x3,f32=2", "--assert-output '1x3,f32=2' is no fact: sizes have commas between them"),
        ("dump --assert-output-fact 1x3", "sizes have commas between them"),
        ("dump --assert-output-fact 1,_,f32", "--assert-output-fact '1,_,f32': "),
        ("dump --assert-op-count Add -1", "-1 is not in the range x>=0"),
        ("-t f32_to_f16(", "the closing parenthesis is missing"),
        ("-t {name:", "--transform"),
    ],
)
def test_values_that_cannot_be(tract: Call, model: Path, line: str, message: str) -> None:
    result = tract(model, *line.split())
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("MODEL --machne-friendly", "there is no flag --machne-friendly, did you mean the global flag --machine-fr"),
        ("MODEL run --machne-friendly", "did you mean the global flag --machine-friendly?"),
        ("--pas type MODEL dump", "did you mean the global flag --pass?"),
        ("--runtme=cpu MODEL", "there is no flag --runtme, did you mean the global flag --runtime?"),
        ("MODEL -runtime cpu", "there is no flag -runtime, did you mean the global flag --runtime?"),
        ("MODEL run --stpes", "did you mean the flag --steps?"),
        ("MODEL --qqq", "there is no flag --qqq; 'tract --help' lists the global flags"),
        ("MODEL bench --steps", "--steps is a flag of 'run', not of 'bench', as in 'tract MODEL run --steps'"),
        ("MODEL --pass type --steps", "as in 'tract MODEL --pass type run --steps'"),
        ("run -R", "write 'tract MODEL run -R'"),
    ],
)
def test_words_that_are_misspelt_or_misplaced(tract: Call, model: Path, line: str, message: str) -> None:
    result = tract(*(str(model) if word == "MODEL" else word for word in line.split()))
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    "line", ["dump MODEL -s", "dump -s --node-id 0 MODEL", "-r reference dump --op-name Relu MODEL -s"]
)
def test_a_subcommand_may_stand_before_the_model(tract: Call, model: Path, line: str) -> None:
    result = tract(*(str(model) if word == "MODEL" else word for word in line.split()))
    assert result.exit_code == 0, result.output
    assert "output 0: y" in result.output


def test_every_global_flag_that_is_misspelt_is_guessed(tract: Call, model: Path) -> None:
    names = [option.opts[-1] for option in app.params if option.opts[-1].startswith("--")]
    for name in names:
        wrong = f"{name}q"
        result = tract(model, wrong, "x")
        assert result.exit_code == 2, name
        assert f"there is no flag {wrong}, did you mean" in result.output


def test_hints_name_the_flag_and_repeat_the_global_flags(tract: Call, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    unknown = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [unknown], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    result = tract(path, "--limit", "max_nodes=99", "-r", "reference")
    assert "hint: give it with -i NAME:1,3,224,224,f32\n" in result.output
    assert f"'tract {path} --limit max_nodes=99 -r reference doctor' lists everything" in result.output
    few = tract(path, "--limit", "max_nodes=0", "run")
    assert "can be loaded with --limit max_nodes=N\n" in few.output
    assert "LoadLimits" not in few.output


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("load it with ignore_value_info=True; else mend it", "load it with --onnx-ignore-value-info; else mend it"),
        ("as set_input_fact('x', 'B,3,f32') says", "as -i x:B,3,f32 says"),
        ('try set_input_fact(0, "B,3,f32")', "try -i B,3,f32"),
        ("use LoadLimits(max_nodes=...)", "use --limit max_nodes=N"),
        ("--input-node, or set_input_names in Python", "--input-node"),
        ("'tract MODEL doctor' lists it", "'tract m.onnx -v doctor' lists it"),
        ('write {"name": "set_symbols", "values": {}}', 'write {"name": "set_symbols", "values": {}}'),
    ],
)
def test_what_the_library_says_in_python(said: str, told: str) -> None:
    from tract_core.cli.request import Request
    from tract_core.cli.wording import on_the_line

    assert on_the_line(said, Request(model="m.onnx", given=("-v",))) == told


def test_an_unknown_operator_is_named_with_the_name_of_its_node(tract: Call, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Foo", ["x"], ["a"], name="encoder/foo_1"),
        helper.make_node("Foo", ["a"], ["y"]),
    ]
    facts = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B"]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", facts[:1], facts[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    for command in ((), ("doctor",)):
        output = tract(tmp_path / "m.onnx", *command).output
        assert "node 'encoder/foo_1' (Foo)" in output
        assert "node 'y' (Foo)" in output


def test_arrays_from_files(tract: Call, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "x=1.npy"
    np.save(path, np.ones((2, 4), np.float32))
    for line in ((model, "--input", f"x={path}", "run"), (model, "run", "-i", f"x={path}")):
        result = tract(*line, "--assert-output", "2,3,f32=2.8,3.2,3.6,2.8,3.2,3.6", "--approx", "approximate")
        assert result.exit_code == 0, result.output
    assert "there are: x" in tract(model, "-i", f"q={path}", "run").output
    np.save(path, np.array([object()]), allow_pickle=True)
    refused = tract(model, "-i", f"x={path}", "run")
    assert refused.exit_code == 1
    assert "holds Python objects" in refused.output


def test_random_ranges_fit_the_element_type(tract: Call, model: Path) -> None:
    assert tract(model, "-i", "1,4,f32", "run", "-R", "--random-range", "x=3..3").exit_code == 0
    result = tract(model, "-i", "1,4,f32", "run", "-R", "--random-range", "0..1e300")
    assert result.exit_code == 1
    assert "is more than f32 holds" in result.output
    assert "there is no input 'q'" in tract(model, "-i", "1,4,f32", "run", "-R", "--random-range", "q=0..1").output


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
@pytest.mark.parametrize("line", ["", "run -R --set B=1", "-i nix:1,f32", "--\u7bb1"])
def test_any_encoding_of_the_terminal(tmp_path: Path, environment: dict[str, str], line: str) -> None:
    path = tmp_path / "\u7bb1.onnx"
    x, y = "gr\u00f6\u00dfe\u2192\u7bb1", "\u7d50\u679c"
    facts = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B"]) for name in (x, y)]
    graph = helper.make_graph([helper.make_node("Relu", [x], [y])], "g", facts[:1], facts[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))
    given = [sys.executable, "-m", "tract_core", os.fsencode(path), *line.split()]
    result = subprocess.run(given, env={**os.environ, **environment}, capture_output=True, check=False)
    for output in (result.stdout, result.stderr):
        assert b"UnicodeEncodeError" not in output
        assert b"Traceback" not in output
        if environment.get("PYTHONIOENCODING") == "ascii":
            output.decode("ascii")
    assert result.stdout + result.stderr


@pytest.mark.parametrize("name", ["", *tract_commands()])
def test_help_fits_in_80_columns(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="tract", terminal_width=80)
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("line", "distribution"),
    [
        ("native", "tract-cpu"),
        ("cache clear", "tract-llvm"),
        ("MODEL native", "tract-cpu"),
        ("inferers describe MODEL", "tract-inferers"),
        ("torch-export", "tract-torch"),
        ("MODEL chat", "tract-transformers"),
        ("help native", "tract-cpu"),
        ("MODEL --pulse 4", "tract-pulse"),
        ("--pulse=4 MODEL run", "tract-pulse"),
        ("MODEL dump --nnef-tar x.tar", "tract-nnef"),
        ("MODEL dump --opl", "tract-nnef"),
        ("MODEL --onnx-ignore-value-info", "tract-onnx"),
    ],
)
def test_what_a_distribution_that_is_left_out_would_bring_names_it(model: Path, line: str, distribution: str) -> None:
    """The core alone; the distribution is installed here, which is told as well."""
    line = line.replace("MODEL", str(model))
    command = [sys.executable, "-m", "tract_core", *line.split()]
    variables = {**os.environ, "TRACT_PLUGINS": "none"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f" comes with {distribution}\n  hint: " in done.stderr
    if is_installed(distribution):
        assert f"{distribution} is installed, but not in use: 'tract plugins' says why" in done.stderr


def test_a_flag_that_is_nearly_one_of_a_plugin_that_is_there_is_a_slip(tract: Call, model: Path) -> None:
    assert "did you mean the flag --nnef-tar?" in tract(model, "dump", "--nnef-tarr", "x").output
    assert "comes with" not in tract(model, "--pulse-size", "4").output


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what people have that is no model, and is none of the values that a model takes as they are."""
    from PIL import Image

    Image.new("L", (8, 8)).save(tmp_path / "cat.png")
    (tmp_path / "hello.wav").write_bytes(b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0")
    (tmp_path / "notes.md").write_text("# notes")
    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 4), np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("things")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run -i cat.png", "'cat.png' is an image"),
        ("run --input=x:cat.png", "'cat.png' is an image"),
        ("run -i hello.wav", "'hello.wav' is a sound\n  hint: --input NAME=FILE.wav takes one in PCM"),
        ("run -i x=x.npz", "'x.npz' is an archive of arrays of NumPy\n  hint: --input-from-npz takes it"),
        ("run -i x.npy", "'x.npy' is an array of NumPy\n  hint: --input NAME=FILE.npy takes it"),
        ("run -i x=notes.md", "'notes.md' is a text that begins with '# notes'"),
        ("run -i x=dog.jpg", "there is no file 'dog.jpg'"),
        ("run x.npy", "a second file, 'x.npy': values of an input are given with --input NAME=FILE.npy"),
        ("cat.png", "a second file, 'cat.png': values of an input are given with --input NAME=FILE.npy"),
    ],
)
def test_values_that_are_in_files_of_another_kind(tract: Call, model: Path, line: str, message: str) -> None:
    result = tract(model, *line.split())
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.usefixtures("things")
def test_bundles_and_models_that_are_none(tract: Call, model: Path) -> None:
    for name, what in (("cat.png", "an image"), ("x.npy", "an array of NumPy")):
        result = tract(model, "run", "--input-from-npz", name)
        assert f"it is no .npz file: {name!r} is {what}\n  hint: numpy.savez" in result.output
        assert f"{name}: it is {what}, and no installed format takes it" in tract(name).output


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """y = a + b, both N,3,f32."""
    facts = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in "ab"]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "pair", facts, [result])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "pair.onnx")
    for name, array in (
        ("wide", np.zeros((1, 3))),
        ("whole", np.zeros((1, 3), np.int64)),
        ("one", np.zeros((1, 3), np.float32)),
        ("two", np.zeros((2, 3), np.float32)),
    ):
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path / "pair.onnx"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (
            "run -i a=wide.npy -i b=one.npy",
            "hint: --allow-float-casts takes floats of other types, numpy.save(",
        ),
        (
            "run -i a=one.npy -i b=two.npy",
            "give one of them another name: -i b:N2,3,f32; or load the file with --onnx-own",
        ),
        ("--pulse 4", "hint: name N, as in --pulse N=4: the size along which the signal comes"),
        ("-t pulse", "hint: write it as pulse(pulse=...)"),
        ("-t set_symbols(N=3)", "its parameters: values\n  hint: write it as set_symbols(values=...)"),
        ("-r cpu(thread=3)", "cpu has no parameter 'thread'; its parameters: "),
        ("--output-node z", "the model has no tensor named 'z'\n  hint: there are a, b, y"),
    ],
)
def test_hints_are_in_the_words_of_the_command(tract: Call, pair: Path, line: str, hint: str, monkeypatch) -> None:
    monkeypatch.chdir(pair.parent)
    result = tract(pair, *line.split())
    assert result.exit_code == 1
    assert hint in result.output
    for python in (".astype('float32'), a tensor", "set_input_fact", "into_model", "Pulse("):
        assert python not in result.output
