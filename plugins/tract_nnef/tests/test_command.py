"""The flags that the format brings to the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from cycles import small_model
from onnx import helper, numpy_helper

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.non_zero import NonZero


@pytest.fixture
def archive(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    tract.Model.from_typed(small_model("2,3,f32")).save("m.nnef.tgz")
    return "m.nnef.tgz"


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    ("flag", "target", "is_folder"), [("--nnef", "a", False), ("--nnef-tar", "b", False), ("--nnef-dir", "c", True)]
)
def test_dump_writes_archives(archive, tmp_path, flag, target, is_folder) -> None:
    found = run(archive, "dump", flag, target)
    assert (found.exit_code, found.output) == (0, "")
    assert (tmp_path / target).is_dir() is is_folder
    again = tract.nnef().load(tmp_path / target)
    assert same_model(again.typed, tract.load(archive).typed)


def test_dump_writes_several_things_at_once_and_still_asserts(archive, tmp_path) -> None:
    found = run(archive, "dump", "--nnef-tar", "a.tar", "--nnef-graph", "b.nnef", "--assert-op-count", "Exp", "2")
    assert found.exit_code == 1
    assert "there are 1 nodes of Exp, not 2" in found.output
    assert {"a.tar", "b.nnef"} <= {one.name for one in tmp_path.iterdir()}


def test_the_text_goes_to_a_file_or_to_standard_output(archive, tmp_path) -> None:
    assert run(archive, "dump", "--nnef-graph", "graph.nnef").exit_code == 0
    shown = run(archive, "dump", "--nnef-graph", "-")
    assert shown.output == (tmp_path / "graph.nnef").read_text()
    assert "y = exp(added);" in shown.output


def test_an_archive_on_standard_output_is_refused(archive) -> None:
    found = run(archive, "dump", "--nnef", "-")
    assert found.exit_code == 1
    assert "an archive is no text, and is not written to standard output" in found.output


def test_flags_about_what_is_not_written_are_refused(archive) -> None:
    found = run(archive, "dump", "--nnef-deterministic")
    assert found.exit_code == 1
    assert "--nnef-deterministic says how nnef is written, which is not asked for" in found.output
    assert run(archive, "dump", "--nnef", "a.tgz", "--nnef-deterministic").exit_code == 0


def test_the_output_gets_another_name(archive) -> None:
    assert run(archive, "dump", "--nnef", "a.tgz", "--nnef-override-output-name", "z").exit_code == 0
    assert tract.load("a.tgz").output_name(0) == "z"


@pytest.mark.parametrize("place", ["before", "behind"])
def test_global_flags_say_what_may_be_written(archive, place) -> None:
    symbolic = tract.Model.from_typed(small_model())
    symbolic.save("s.tar")
    strict, write = ["--no-nnef-tract-core"], ["dump", "--nnef", "a.tgz"]
    found = run("s.tar", *(strict + write if place == "before" else write + strict))
    assert found.exit_code == 1
    assert "node 'x': TypedSource cannot be written" in found.output
    assert run("s.tar", "--nnef-tract-core", *write).exit_code == 0


def test_every_registry_has_its_flag_and_one_stands_for_all(archive) -> None:
    names = ["core", "resource", "onnx", "pulse", "extra", "transformers"]
    flags = [*(f"--nnef-tract-{name}" for name in names), "--opl", "--nnef-extended-identifier-syntax"]
    assert run(archive, *flags, "--nnef-extern-all-constants", "dump", "--nnef-dir", "a").exit_code == 0
    assert {one.name for one in Path("a").iterdir()} == {"graph.nnef", "added.an_operand.dat"}


def test_the_cycle_is_a_stage(archive) -> None:
    found = run(archive, "--nnef-cycle", "run", "-R", "--steps")
    assert found.exit_code == 0
    assert "nnef-cycle" in run(archive, "--pass", "nowhere").output
    tract.Model.from_typed(small_model()).save("s.tar")
    refused = run("s.tar", "--nnef-cycle", "--no-nnef-tract-core", "-q")
    assert refused.exit_code == 1
    assert "cannot be written" in refused.output


def test_a_folder_is_a_model(archive, monkeypatch, tmp_path) -> None:
    assert run(archive, "dump", "--nnef-dir", "folder").exit_code == 0
    monkeypatch.chdir(tmp_path / "folder")
    np.savez("in.npz", x=np.zeros((2, 3), np.float32))
    np.savez("out.npz", y=np.exp(np.tile(np.arange(3, dtype=np.float32), (2, 1))))
    found = run(
        ".", "run", "--input-from-npz", "in.npz", "--assert-output-bundle", "out.npz", "--approx", "approximate"
    )
    assert found.exit_code == 0, found.output


def test_who_reads_what_cannot_be_written_is_not_sent_to_the_doctor(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f32", model.symbols))
    model.set_outputs(model.wire_node("y", NonZero(model.symbols.add("n")), [x]))
    tract.Model.from_typed(model).save("m.nnef.tar")
    strict = ["m.nnef.tar", "--no-nnef-tract-core"]
    for words in (["save", "o.tar"], ["dump", "--nnef", "o.tgz"], ["cook", "-o", "o.tar"]):
        found = run(*strict, *words)
        assert found.exit_code == 1
        assert "node 'y': NonZero cannot be written with the standard alone" in found.output
        assert "allow tract_core, tract_py" in found.output
        assert "doctor" not in found.output


def test_the_size_of_a_model_is_that_of_all_its_files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 64]) for name in "xy")
    model = helper.make_model(helper.make_graph([node], "g", [x], [y], [weight]))
    onnx.save(model, "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    report = json.loads(run("cook", "m.onnx", "-o", "m.nnef.tar", "--json").stdout)
    assert report["before"]["bytes"] == sum(Path(name).stat().st_size for name in ("m.onnx", "m.bin")) > 64 * 64 * 4
    assert report["after"]["bytes"] == Path("m.nnef.tar").stat().st_size
