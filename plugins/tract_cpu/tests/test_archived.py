"""Machine code in archives: it gives what the runtime gives, to the bit, and only to those who trust it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from linked_objects import same
from portable_models import EXAMPLES, Example
from test_ahead import LOOP, of_onnx, of_op
from tract_cpu import ArchivedModel, aligned, archived, compiled_in, load_compiled
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen
from tract_nnef.documents.saver import NnefWriter

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import CorruptModel, InputError, LimitExceeded, MissingFile, RunError, Unsupported
from tract_core.model.typed import TypedModel
from tract_core.ops.gather import Gather

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def written(model: TypedModel, path: Path, targets: str = "native") -> Path:
    NnefWriter(compiled=targets).write(model, path)
    return path


def small(rows: int = 3) -> TypedModel:
    return of_onnx(f"(float[{rows},4] x) => (float[{rows},4] y) {{ a = Exp(x) y = Softmax(a) }}")


def digits(folder: Path) -> Path:
    """The archive of a network with weights, for three rows."""
    words = [str(DIGITS), "--set", "B=3", "cook", "--compiled", "-o", str(folder / "d.nnef.tar")]
    result = CliRunner().invoke(app, words, prog_name="tract")
    assert result.exit_code == 0, result.output
    return folder / "d.nnef.tar"


@pytest.mark.parametrize("compiled", [["--compiled"], ["--compiled", "native"], ["--compiled=native"]], ids=" ".join)
def test_targets_may_be_left_out_wherever_the_flag_stands(compiled: list[str], tmp_path: Path) -> None:
    for number, flags in enumerate((["-o", "{}", *compiled], [*compiled, "-o", "{}"])):
        path = str(tmp_path / f"{number}.nnef.tar")
        code, output = told(str(DIGITS), "--set", "B=3", "cook", *(flag.format(path) for flag in flags))
        assert code == 0, output
        assert compiled_in(path).digest


def told(*words: str) -> Any:
    result = CliRunner().invoke(app, [*words], prog_name="tract")
    return result.exit_code, result.output


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_kinds_of_kernels_give_what_the_runtime_gives(name: str, tmp_path: Path) -> None:
    """With the smallest sizes, 0 mostly, in a folder, and with the largest ones in a tar."""
    example: Example = EXAMPLES[name]
    for sizes, ending in ((example.sizes[0], ".nnef"), (example.sizes[-1], ".nnef.tar")):
        model, given = example.model().substitute(sizes), example.inputs(sizes)
        wanted = CpuPlan(model, chosen("")).spawn().run(given)
        path = written(model, tmp_path / f"m{ending}")
        same(load_compiled(path, trust=compiled_in(path).digest).run(given), wanted)


def test_a_network_with_weights_and_what_it_costs_to_load(tmp_path: Path) -> None:
    """Results to the bit, in a process that imports no compiler, no frontend, and at most 40 modules beyond NumPy."""
    path, x = digits(tmp_path), np.random.default_rng(0).normal(size=(3, 1, 8, 8)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    script = """
import sys, json
import numpy as np
x = np.load(sys.argv[2])
before = set(sys.modules)
from tract_cpu import load_compiled
found = load_compiled(sys.argv[1], trust=True).run([x])
new = sorted(set(sys.modules) - before)
print(json.dumps([found[0].tolist(), new]))
"""
    command = [sys.executable, "-c", script, str(path), str(tmp_path / "x.npy")]
    found, new = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    model = tract.onnx().load(DIGITS)
    model.set_input_fact(0, "3,1,8,8,f32")
    (wanted,) = model.into_model().into_runnable("cpu", threads=1).run([x])
    np.testing.assert_array_equal(np.array(found, np.float32), wanted.numpy())
    assert len(new) <= 40, new
    assert not [one for one in new if one.split(".")[0] in {"llvmlite", "onnx", "click", "pluggy", "tract_nnef"}]


def test_it_is_an_archive_like_any_other(tmp_path: Path) -> None:
    """The model itself is there too, and loads as if there was no code beside it."""
    path, x = digits(tmp_path), np.ones((3, 1, 8, 8), "f4")
    (wanted,) = tract.load(path).into_runnable("cpu", threads=1).run([x])
    np.testing.assert_array_equal(load_compiled(path, trust=True)(x)[0], wanted.numpy())
    np.testing.assert_array_equal(load_compiled(path, trust=True)(image=x)[0], wanted.numpy())


def test_nothing_runs_that_nobody_trusts(tmp_path: Path) -> None:
    path = written(small(), tmp_path / "m.nnef.tar")
    digest = compiled_in(path).digest
    for trust in (False, "", "0" * 40, digest[:-1], 1, None):
        with pytest.raises(InputError, match=r"m\.nnef\.tar.*(nobody said|is trusted)"):
            load_compiled(path, trust=trust)  # pyright: ignore[reportArgumentType]: callers may be untyped
    with pytest.raises(InputError, match=f"trust='{digest}'"):
        load_compiled(path)
    assert isinstance(load_compiled(path, trust=digest), ArchivedModel)


@pytest.mark.parametrize("part", ["index.json", ".o", ".bin"])
def test_what_is_damaged_is_not_run(part: str, tmp_path: Path) -> None:
    """By its digest for who gives one; the code and the index for everybody."""
    model = of_onnx("(float[1,200] x) => (float[1,3] y) <float[200,3] w = {" + "1," * 599 + "1}> { y = MatMul(x, w) }")
    path = written(model, tmp_path / "m.nnef")
    digest = compiled_in(path).digest
    (file,) = [one for one in (path / "compiled").iterdir() if one.name.endswith(part)]
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 0xFF
    for content in (bytes(changed), whole[: len(whole) // 2], b""):
        file.write_bytes(content)
        with pytest.raises((CorruptModel, InputError)):
            load_compiled(path, trust=digest)
        if part != ".bin" and content != changed:
            with pytest.raises((CorruptModel, InputError)):
                load_compiled(path, trust=True)
    file.unlink()
    with pytest.raises((CorruptModel, InputError), match=r"missing|no machine code"):
        load_compiled(path, trust=True)


@pytest.mark.parametrize(
    "said",
    [
        b"", b"[]", b"{", b"\xff", b'{"format": 3}', b'{"format": "tract compiled 1"}',
        b'{"format": "tract compiled 1", "codes": [{}], "inputs": [], "outputs": []}',
        b'{"format": "tract compiled 1", "codes": 3, "inputs": [], "outputs": []}',
        b'{"format": "tract compiled 1", "codes": [], "inputs": [["x", [-1], "float32"]], "outputs": []}',
        b'{"format": "tract compiled 1", "codes": [], "inputs": [["x", [1.5], "float32"]], "outputs": []}',
        b'{"format": "tract compiled 1", "codes": [], "inputs": 1, "outputs": []}',
        b'{"format": "tract compiled 2", "codes": [], "inputs": [], "outputs": []}',
        b'{"format": "tract compiled 1", "codes": [], "inputs": [], "outputs": []}',
        b"[" * 100000,
    ],
)  # fmt: skip
def test_an_index_that_makes_no_sense_is_refused(said: bytes, tmp_path: Path) -> None:
    path = written(small(), tmp_path / "m.nnef")
    (path / "compiled" / "index.json").write_bytes(said)
    with pytest.raises((CorruptModel, Unsupported)):
        load_compiled(path, trust=True)


@pytest.mark.parametrize("memory", [1 << 50, 1 << 61, 1 << 62, 1 << 80])
def test_memory_that_no_machine_has_is_refused(memory: int, tmp_path: Path) -> None:
    path = written(small(), tmp_path / "m.nnef")
    index = path / "compiled" / "index.json"
    said = json.loads(index.read_bytes())
    said["codes"][0]["memory"] = memory
    index.write_text(json.dumps(said))
    with pytest.raises((LimitExceeded, CorruptModel), match=r"m\.nnef"):
        load_compiled(path, trust=True)


def test_code_for_other_machines_is_not_run(tmp_path: Path) -> None:
    here = chosen("").architecture
    other = "aarch64" if here == "x86_64" else "x86-64"
    path = written(small(), tmp_path / "m.nnef.tar", f"{other}, x86-64-v3-windows,{other}")
    assert len(compiled_in(path).codes) == 2
    with pytest.raises(Unsupported, match=r"for this machine: .*: it is for .*; .*: it is for ") as refused:
        load_compiled(path, trust=True)
    named = other.replace("-", "_")
    assert "it is for x86_64 and win32" in str(refused.value)
    assert f"it is for {named} and linux" in str(refused.value)


def test_the_best_code_is_run(tmp_path: Path) -> None:
    if chosen("").architecture != "x86_64":
        pytest.skip("names processors of another kind")
    path = written(small(), tmp_path / "m.nnef.tar", "x86-64-v4,x86-64,x86-64-v3")
    assert [one.instructions for one in compiled_in(path).codes] == ["sse2", "avx2", "avx512"]
    reasons = [one.why_not() for one in compiled_in(path).codes]
    assert reasons[0] is None
    assert load_compiled(path, trust=True).run([np.zeros((3, 4), "f4")])[0].tolist() == [[0.25] * 4] * 3


def test_who_lacks_instructions_is_told_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if chosen("").architecture != "x86_64":
        pytest.skip("names processors of another kind")
    path = written(small(), tmp_path / "m.nnef.tar", "x86-64-v3")
    monkeypatch.setattr("tract_cpu.archived.features", lambda: {"avx2": True, "f16c": True})
    with pytest.raises(Unsupported, match="avx2: this processor lacks fma, bmi2"):
        load_compiled(path, trust=True)


def test_what_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    model = load_compiled(written(small(), tmp_path / "m.nnef.tar"), trust=True)
    x = np.ones((3, 4), "f4")
    for wrong, why in (
        ([], "0 inputs were given"),
        ([x.astype("f8")], "float64"),
        ([x[0]], r"shape \(4,\)"),
        ({"y": x}, "no input 'y'"),
        (3, "got int"),
    ):
        with pytest.raises(InputError, match=why):
            model.run(wrong)  # pyright: ignore[reportArgumentType]: callers may be untyped
    assert np.asarray(model.run([x[::-1].T.copy().T])).shape == (1, 3, 4)


def test_an_index_beyond_its_axis_is_told_and_the_model_goes_on(tmp_path: Path) -> None:
    model = load_compiled(written(of_op(Gather(0), "4,3,f32", "2,i64"), tmp_path / "m.nnef.tar"), trust=True)
    table = np.arange(12, dtype="f4").reshape(4, 3)
    for _ in range(2):
        with pytest.raises(RunError, match="beyond its axis"):
            model.run([table, np.array([1, 4])])
        assert model.run([table, np.array([3, -1])])[0].tolist() == [[9, 10, 11], [9, 10, 11]]


def test_loops_go_round_as_often_as_the_run_says(tmp_path: Path) -> None:
    model = load_compiled(written(of_onnx(LOOP), tmp_path / "m.nnef.tar"), trust=True)
    x = np.arange(12, dtype="f4").reshape(3, 4)
    for count in (0, 1, 5):
        same(model.run([x, np.array(count), np.array(True)]), [x * np.float32(2**count)])


def test_each_has_memory_of_its_own_and_one_thread_at_a_time(tmp_path: Path) -> None:
    first = load_compiled(written(small(), tmp_path / "m.nnef.tar"), trust=True)
    second, x = first.another(), np.ones((3, 4), "f4")
    np.testing.assert_array_equal(first.run([x]), second.run([x]))
    refused: list[str] = []

    def meanwhile() -> None:
        try:
            first.run([x])
        except RunError as error:
            refused.append(str(error))

    code = first._code
    thread = threading.Thread(target=meanwhile)

    def slowly(*_: int) -> int:
        thread.start()
        thread.join()
        return 0

    first._code = code._replace(run=slowly)
    first.run([x])
    assert "another thread runs this model" in refused[0]
    first._code = code
    assert first.run([x])[0].shape == (3, 4)


def test_what_cannot_be_compiled_is_not_written(tmp_path: Path) -> None:
    open_sizes = tract.onnx().load(DIGITS).into_model().typed
    for model, targets, error, why in (
        (open_sizes, "native", Unsupported, "sizes are open: B"),
        (small(), "wasm32", InputError, "no Python runs code for the web"),
        (small(), "native,wasm32+relaxed-simd", InputError, "no Python runs code for the web"),
        (small(), "z80", Unsupported, "no target 'z80'"),
        (small(), " , ", InputError, "names no target"),
    ):
        with pytest.raises(error, match=why):
            written(model, tmp_path / "m.nnef.tar", targets)
    with pytest.raises(InputError, match="compressed archive"):
        written(small(), tmp_path / "m.nnef.tgz")
    with pytest.raises(InputError, match="compressed archive"):
        NnefWriter(compiled="native").to_bytes(small())
    assert not list(tmp_path.iterdir())


def test_what_brings_no_code_says_so(tmp_path: Path) -> None:
    tract.nnef().write_model_to_tar(tract.onnx().load(DIGITS).into_model(), tmp_path / "m.nnef.tar")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"no tar" * 200)
    for name, error, why in (
        ("m.nnef.tar", InputError, "no machine code in it"),
        ("folder", InputError, "no machine code in it"),
        ("empty", InputError, "no machine code in it"),
        ("text", InputError, "no tar"),
        ("nowhere", MissingFile, "no such file"),
    ):
        with pytest.raises(error, match=why):
            load_compiled(tmp_path / name, trust=True)


def test_an_archive_that_another_tool_packed(tmp_path: Path) -> None:
    folder = written(small(), tmp_path / "m.nnef")
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        archive.add(folder, ".")
    x = np.ones((3, 4), "f4")
    same(load_compiled(tmp_path / "m.tar", trust=True).run([x]), load_compiled(folder, trust=True).run([x]))


@pytest.mark.parametrize("size", [0, 1, 511, 512, 700, 2000])
def test_a_tar_that_is_cut_off_is_refused(size: int, tmp_path: Path) -> None:
    path = written(small(), tmp_path / "m.nnef.tar")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises((CorruptModel, InputError)):
        load_compiled(path, trust=True)


def test_memory_begins_where_the_runtime_has_it_begin() -> None:
    assert archived.ALIGNMENT == aligned.ALIGNMENT


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = [written(small(), tmp_path / f"{number}.nnef.tar").read_bytes() for number in range(2)]
    assert contents[0] == contents[1]


def test_the_command_shows_what_is_in_an_archive(tmp_path: Path) -> None:
    path = digits(tmp_path)
    code, text = told("compiled", str(path))
    assert code == 0
    assert "input image: [3, 1, 8, 8] float32" in text
    assert "runs here" in text
    assert text.rstrip().endswith(f"digest {compiled_in(path).digest}")
    code, text = told("compiled", str(path), "--json")
    assert json.loads(text)["digest"] == compiled_in(path).digest
    code, text = told("compiled", str(tmp_path / "nowhere"))
    assert (code, "no such file" in text) == (1, True)


def test_pickling_is_refused(tmp_path: Path) -> None:
    import pickle

    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(load_compiled(written(small(), tmp_path / "m.nnef.tar"), trust=True))


def test_constants_are_mapped_and_not_copied(tmp_path: Path) -> None:
    """They lie in the memory of the archive, which processes share."""
    model = load_compiled(digits(tmp_path), trust=True)
    constants = model._code.held[-1]
    assert not constants.flags.owndata
    if sys.platform == "linux":
        address, name = constants.ctypes.data, os.fspath(tmp_path)
        maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if name in line]
        bounds = [[int(one, 16) for one in line[0].split("-")] for line in maps]
        assert any(begin <= address < end for begin, end in bounds)
