"""``tract cook``: what is written is as good as the model, or it is not written."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Exp
from tract_core.ops.slice import Slice


def cook(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """y = exp(x), z = x * x + x, where the sizes of x are symbols."""
    monkeypatch.chdir(tmp_path)
    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact("B,S,f32", graph.symbols))
    y = graph.wire_node("y", Exp(), [x])
    squares = graph.wire_node("squares", Mul(), [x, x])
    graph.set_outputs([*y, *graph.wire_node("z", Add(), [*squares, x])])
    tract.Model.from_typed(graph).save("m.tar")
    return "m.tar"


@pytest.mark.parametrize("words", [("cook", "m.tar", "-o", "c.tgz"), ("m.tar", "cook", "-o", "c.tgz")])
def test_the_report_has_both_sides(model: str, words: tuple[str, ...]) -> None:
    found = cook(*words)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0] == "m.tar is cooked as c.tgz"
    assert [line.split()[0] for line in lines[1:5]] == ["before", "operators", "size", "load"]
    assert lines[5].startswith(".nnef.tgz: ")
    assert lines[6:] == [
        f"agrees with {sizes}, largest difference 0 (allowed: approximate)"
        for sizes in ("B=3, S=4", "B=1, S=1", "B=7, S=8")
    ]
    assert tract.load("c.tgz").input_name(0) == "x"


def test_the_report_as_json(model: str) -> None:
    found = json.loads(cook("cook", model, "-o", "c", "--as", "nnef", "--json").stdout)
    files = [one.stat().st_size for one in Path("c").iterdir()]
    assert found["before"]["operators"] == found["after"]["operators"] == 3
    assert (found["before"]["bytes"], found["after"]["bytes"]) == (Path(model).stat().st_size, sum(files))
    assert [one["sizes"] for one in found["compared"]] == [{"B": 3, "S": 4}, {"B": 1, "S": 1}, {"B": 7, "S": 8}]
    assert found["largest_difference"] == 0.0
    assert found["before"]["load_s"] > 0


def test_without_a_named_ending_it_is_written_as_what_loads_fastest(model: str) -> None:
    """Here, as MODEL is called; with the ending, where a name is given; in a folder, as MODEL is called."""
    Path("m.tar").rename("m.NNEF.tgz")  # what is in a file decides
    Path("out").mkdir()
    for words, written in [((), "m.nnef.tar"), (("-o", "other"), "other.nnef.tar"), (("-o", "out"), "out/m.nnef.tar")]:
        found = cook("cook", "m.NNEF.tgz", "--no-compare", *words)
        assert found.exit_code == 0, found.output
        assert found.stdout.startswith(f"m.NNEF.tgz is cooked as {written}\n")
        assert tarfile.is_tarfile(written)
        assert not Path(written).read_bytes().startswith(b"\x1f\x8b")
    assert {one.name for one in Path().iterdir()} == {"m.NNEF.tgz", "m.nnef.tar", "other.nnef.tar", "out"}


def test_the_model_itself_is_not_written_over_unless_it_is_named(model: str) -> None:
    assert cook("cook", model, "-o", "c").exit_code == 0
    found = cook("cook", "c.nnef.tar")
    assert found.exit_code == 1
    assert "c.nnef.tar: it would take the place of the model itself\n  hint: name a file with -o" in found.stderr
    assert cook("cook", "c.nnef.tar", "-o", "c.nnef.tar").exit_code == 0


def test_the_report_says_what_each_form_is_good_for(model: str) -> None:
    forms = {
        ".nnef.tar": ".nnef.tar: loads at once: weights are mapped",
        ".nnef.tgz": ".nnef.tgz: smaller by what gzip gains",
        ".nnef": ".nnef: a folder of files",
    }
    for output, told in [("c", forms), ("c.nnef.tgz", [".nnef.tgz"]), ("c.tgz", [".nnef.tgz"]), ("c.nnef", [".nnef"])]:
        lines = cook("cook", model, "-o", output, "--no-compare").stdout.splitlines()
        assert [form for form, text in forms.items() if any(line.startswith(text) for line in lines)] == [*told]
        assert len([line for line in lines if line.startswith(".")]) == len(told)


def test_what_differs_is_not_written(model: str) -> None:
    Path("c.tar").write_bytes(b"what was there")
    found = cook("cook", model, "-o", "c.tar", "-t", "f32_to_f16", "--approx", "exact")
    assert found.exit_code == 1
    assert "differs with B=3, S=4" in found.stdout
    assert "c.tar: what was written differs from MODEL: output 'y': " in found.stderr
    assert Path("c.tar").read_bytes() == b"what was there"
    assert {one.name for one in Path().iterdir()} == {"m.tar", "c.tar"}


def test_transforms_and_sizes_are_part_of_what_is_cooked(model: str) -> None:
    found = cook("cook", model, "-o", "c.tar", "-t", "f32_to_f16", "--set", "B=2", "--json")
    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    assert [one["sizes"] for one in report["compared"]] == [{"S": 3}, {"S": 1}, {"S": 7}]
    assert 0 < report["largest_difference"] < 0.01
    assert str(tract.load("c.tar").input_fact(0)) == "2,S,f16"


def test_outputs_that_a_transform_leaves_are_compared_by_name(model: str) -> None:
    found = cook("cook", model, "-o", "c.tar", "-t", 'select_outputs(outputs: ["z"])')
    assert found.exit_code == 0, found.output
    assert tract.load("c.tar").output_count() == 1


def test_one_size_may_be_given(model: str) -> None:
    found = cook("cook", model, "-o", "c.tar", "--size", "B=5", "--size", "S=6", "--json")
    assert [one["sizes"] for one in json.loads(found.stdout)["compared"]] == [{"B": 5, "S": 6}]


def test_sizes_that_the_model_wants_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An axis may be stretched to a number, and is larger than 1: only that number will do."""
    monkeypatch.chdir(tmp_path)
    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact("B,S,f32", graph.symbols))
    row = graph.add_const("row", np.ones((1, 256), np.float32))
    added = graph.wire_node("added", Add(), [x, row])
    sliced = graph.wire_node("sliced", Slice(1, 0, 6), [x])
    graph.set_outputs([*added, *sliced])
    tract.Model.from_typed(graph).save("m.tar")
    found = cook("cook", "m.tar", "-o", "c.tar", "--json")
    assert [one["sizes"]["S"] for one in json.loads(found.stdout)["compared"]] == [256, 256, 256]


def test_nothing_is_run_where_nothing_is_to_be_compared(model: str) -> None:
    found = cook("cook", model, "-o", "c.tar", "--no-compare")
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (0, "not compared")


def test_what_is_wrong_with_the_output_is_said_before_anything_is_done(model: str) -> None:
    Path("folder").mkdir()
    for output, problem in [("folder", "it is a folder"), ("no/c.tar", "it cannot be written: No such file")]:
        found = cook("cook", "absent.onnx", "--as", "nnef", "-o", output)
        assert found.exit_code == 1
        assert problem in found.stderr


def test_a_model_is_wanted(model: str) -> None:
    found = cook("cook", "-o", "c.tar")
    assert found.exit_code == 2
    assert "cook works on a model: write 'tract MODEL cook -o c.tar'" in found.stderr
