"""Models as packages of Python: what a wheel holds, and what is imported from it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper
from tract_cpu.ahead.package import wheel_name

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import InputError

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="wants a compiler for C")

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def compiled(folder: Path, model: Path, *words: str, file: str = "my-2.1.whl") -> Path:
    result = CliRunner().invoke(app, [str(model), *words, "compile", str(folder / file)], prog_name="tract")
    assert result.exit_code == 0, result.output
    (found,) = folder.glob("*.whl")
    assert found.name in result.output
    return found


def ran(wheel: Path, script: str) -> Any:
    """What a script prints as JSON that imports from a wheel, unpacked as pip does it, with NumPy and nothing else."""
    unpacked = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    first = f"import sys, json\nsys.path.insert(0, {str(unpacked)!r})\nimport numpy as np\nbefore = len(sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", first + script], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def saved(folder: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any]) -> Path:
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


@needs_compiler
def test_a_package_gives_what_the_runtime_gives(tmp_path: Path) -> None:
    wheel = compiled(tmp_path, DIGITS, "--set", "B=3")
    script = """
import my
x = np.random.default_rng(0).normal(size=(3, 1, 8, 8)).astype("f4")
found = [my.run([x]), my.run({"image": x}), my.Model()(x), my.Model()(image=x), my.run([x[:, :, ::-1][:, :, ::-1]])]
assert all(one[0].tobytes() == found[0][0].tobytes() for one in found)
ours = sorted(one for one in sys.modules if one.startswith(("tract", "onnx", "llvmlite")))
print(json.dumps([found[0][0].tolist(), ours, len(sys.modules) - before]))
"""
    found, ours, modules = ran(wheel, script)
    x = np.random.default_rng(0).normal(size=(3, 1, 8, 8)).astype("f4")
    model = tract.onnx().load(DIGITS)
    model.set_input_fact(0, "3,1,8,8,f32")
    (wanted,) = model.into_model().into_runnable("cpu", threads=1).run([x])
    np.testing.assert_array_equal(np.array(found, np.float32), wanted.numpy())
    assert ours == []
    assert modules < 40


@needs_compiler
def test_a_package_whose_sizes_are_open(tmp_path: Path) -> None:
    """Arrays tell them: there and back, as memory grows and stays."""
    wheel = compiled(tmp_path, DIGITS)
    script = """
import my
x = np.random.default_rng(0).normal(size=(70, 1, 8, 8)).astype("f4")
model = my.Model()
found = [model(x[:count])[0].tolist() for count in (3, 0, 70, 1)]
told = []
for wrong in ([x[0]], [x[:, :, :7]], [x[:, :1, :, :1]]):
    try:
        model.run(wrong)
    except ValueError as error:
        told.append(str(error))
print(json.dumps([my.INPUTS["image"][0], found, my.run([x[:3]])[0].tolist() == found[0], told]))
"""
    shape, found, same, told = ran(wheel, script)
    assert shape == ["B", 1, 8, 8]
    assert same
    x = np.random.default_rng(0).normal(size=(70, 1, 8, 8)).astype("f4")
    model = tract.onnx().load(DIGITS).into_model().into_runnable("cpu", threads=1)
    for count, one in zip((3, 0, 70, 1), found, strict=True):
        (wanted,) = model.run([x[:count]])
        np.testing.assert_array_equal(np.array(one, np.float32).reshape(wanted.shape), wanted.numpy())
    assert told == [
        "input 'image' has shape (1, 8, 8), the model takes (B, 1, 8, 8)",
        "input 'image' has shape (70, 1, 7, 8), the model takes (70, 1, 8, 8)",
        "input 'image' has shape (70, 1, 8, 1), the model takes (70, 1, 8, 8)",
    ]


@needs_compiler
def test_inputs_that_tell_a_size_each_and_do_not_agree(tmp_path: Path) -> None:
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("a", ["N"]), ("b", ["M"]))
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = saved(tmp_path, [helper.make_node("Add", ["a", "b"], ["y"])], given, [output], {})
    script = """
import my
a = np.arange(4, dtype="f4")
found = [my.run([a, a])[0].tolist(), my.run([a[1:2], a])[0].tolist()]
try:
    my.run([a, a[:3]])
except ValueError as error:
    print(json.dumps([*found, str(error), my.run([a, a[:1]])[0].tolist()]))
"""
    same, stretched, told, other = ran(compiled(tmp_path, model), script)
    assert (same, stretched, other) == ([0, 2, 4, 6], [1, 2, 3, 4], [0, 1, 2, 3])
    assert told == "the model takes no inputs of these sizes together: 'a' of shape (4,), 'b' of shape (3,)"


@needs_compiler
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    wheel = compiled(tmp_path, DIGITS, "--set", "B=1")
    script = """
import my
told = []
x = np.ones((1, 1, 8, 8), "f4")
for wrong in ([], [x, x], [x.astype("f8")], [x[0]], {"x": x}, 3, {"image": None}):
    try:
        my.run(wrong)
    except (TypeError, ValueError) as error:
        told.append(f"{type(error).__name__}: {error}")
print(json.dumps(told))
"""
    assert ran(wheel, script) == [
        "ValueError: 0 inputs were given, the model takes 1: image",
        "ValueError: 2 inputs were given, the model takes 1: image",
        "TypeError: input 'image' has elements of type float64, the model takes float32",
        "ValueError: input 'image' has shape (1, 8, 8), the model takes (1, 1, 8, 8)",
        "ValueError: there is no input 'x'; input 'image' is missing; the inputs are image",
        "TypeError: inputs are given as a list, or by name; got int",
        "TypeError: input 'image' has elements of type object, the model takes float32",
    ]


@needs_compiler
def test_an_index_beyond_its_axis_is_told_and_the_model_goes_on(tmp_path: Path) -> None:
    index = helper.make_tensor_value_info("i", TensorProto.INT64, [2])
    given = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    table = {"t": np.arange(12, dtype=np.float32).reshape(4, 3)}
    model = saved(tmp_path, [helper.make_node("Gather", ["t", "i"], ["y"])], [index], [given], table)
    script = """
import my
try:
    my.run([np.array([1, 4])])
except IndexError as error:
    print(json.dumps([str(error), my.run([np.array([3, -1])])[0].tolist()]))
"""
    told, found = ran(compiled(tmp_path, model), script)
    assert "beyond its axis" in told
    assert found == [[9, 10, 11], [9, 10, 11]]


@needs_compiler
def test_another_processor_is_told_when_it_is_imported(tmp_path: Path) -> None:
    wheel = compiled(tmp_path, DIGITS, "--set", "B=1")
    script = """
import builtins, io
real = builtins.open

def opened(name, *more, **named):
    return io.StringIO("flags : fpu sse2\\n") if name == "/proc/cpuinfo" else real(name, *more, **named)

builtins.open = opened
try:
    import my
    print(json.dumps("imported"))
except ImportError as error:
    print(json.dumps(str(error)))
"""
    if sys.platform == "linux" and "avx2" in Path("/proc/cpuinfo").read_text():
        assert "was compiled for another processor: this one lacks avx2" in ran(wheel, script)


@needs_compiler
def test_the_record_has_every_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(compiled(tmp_path, DIGITS, "--set", "B=1")) as archive:
        (record,) = [one for one in archive.namelist() if one.endswith("RECORD")]
        lines = archive.read(record).decode().splitlines()
        told = {name: (digest, size) for name, digest, size in (line.rsplit(",", 2) for line in lines)}
        assert set(told) == set(archive.namelist())
        for name, (digest, size) in told.items():
            content = archive.read(name)
            wanted = f"sha256={urlsafe_b64encode(sha256(content).digest()).rstrip(b'=').decode()}"
            assert name == record or (digest, int(size)) == (wanted, len(content))


@pytest.mark.parametrize(
    ("given", "name", "version"),
    [("digits.whl", "digits", "1.0"), ("My-2.1.whl", "my", "2.1"), ("a.b-1.0rc1-py3-none-any.whl", "a_b", "1.0rc1")],
)
def test_the_name_of_a_wheel_is_completed(given: str, name: str, version: str) -> None:
    found = wheel_name(Path("folder") / given)
    assert found[:2] == (name, version)
    assert found[2].startswith(f"{name}-{version}-py3-none-")


@pytest.mark.parametrize("given", ["1x.whl", "-.whl", "a-version.whl", "a-1-b-c-d-e.whl"])
def test_what_names_no_package_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="names no package of Python"):
        wheel_name(Path(given))


@needs_compiler
def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        contents.append(compiled(tmp_path / str(number), DIGITS, "--set", "B=1").read_bytes())
    assert contents[0] == contents[1]
