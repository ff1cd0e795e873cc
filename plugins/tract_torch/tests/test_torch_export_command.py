"""The command: what it prints, writes and refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tract_core as tract
from tract_core.cli.frame import app

NETWORKS = """
import torch


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def with_example():
    return network(), (torch.randn(2, 8),)


def number():
    return 3


def failing():
    return {}["weights"]


def bound():
    import beside
    return beside.network(), (torch.randn(2, 8),)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "some_networks.py").write_text(NETWORKS)
    (tmp_path / "wrong.py").write_text("def network(:")
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(3)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def export(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["torch-export", *arguments])


def test_a_factory_that_brings_its_example(folder: Path) -> None:
    done = export("some_networks:with_example", "m.nnef")
    assert done.exit_code == 0, done.output
    assert "m.nnef.tar: " in done.output
    assert "compared with the module on 3 inputs, approximate" in done.output
    assert tract.load(folder / "m.nnef.tar").input_names() == ["input_0"]


def test_what_lies_beside_a_file_can_be_imported_and_no_longer_afterwards(folder: Path) -> None:
    (folder / "beside.py").write_text("from some_networks import network")
    before = list(sys.path)
    done = export(f"{folder / 'some_networks.py'}:bound", "m.nnef", "--no-check")
    assert done.exit_code == 0, done.output
    assert sys.path == before


def test_a_size_may_be_a_multiple_of_a_symbol(folder: Path) -> None:
    done = export("some_networks:network", "m.nnef", "-i", "x:2*B,8,f32", "--size", "B=3")
    assert done.exit_code == 0, done.output
    typed = tract.load(folder / "m.nnef.tar").typed
    assert str(typed.outlet_fact(typed.inputs[0])) == "2*B,8,f32"


def test_an_example_that_is_described(folder: Path) -> None:
    arguments = [
        "-i",
        "x:B,8,f32",
        "--size",
        "B=4",
        "-o",
        "y",
        "--for",
        "0.23.9",
        "--property",
        "licence=MIT",
        "--json",
    ]
    done = export(f"{folder / 'some_networks.py'}:network", "m.nnef.tgz", *arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["path"] == "m.nnef.tgz"
    assert found["bytes"] == (folder / "m.nnef.tgz").stat().st_size
    assert found["check"]["trials"][0]["sizes"] == {"B": 4}
    model = tract.load(folder / "m.nnef.tgz")
    assert [str(fact) for fact in model.input_facts()] == ["B,8,f32"]
    assert str(model.typed.properties["licence"]) == "MIT"
    (y,) = model.into_runnable().run([np.zeros((1, 8), np.float32)])
    assert y.shape == (1, 4)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["some_networks:nothing"], "there is no function 'nothing'"),
        (["some_networks:number"], "number returns int"),
        (["some_networks:network"], "there is no example to export the module with"),
        (["some_networks:network", "-i", "B*B,8,f32"], "'B*B' is no size that may be another one"),
        (["some_networks:network", "-i", "B,9,f32"], "9"),
        (
            ["some_networks:network", "-i", "B,8,f32", "--for", "khronos"],
            "the standard has no sizes that may be others",
        ),
        (["some_networks:network", "-i", "B,8,f32", "--size", "B"], "--size B: wanted a symbol and a number"),
        (
            ["there_is_no_such_module:network"],
            "importing it gave ModuleNotFoundError: No module named 'there_is_no_such_module'",
        ),
        (["nowhere.py:network"], "there is no such file"),
        (["network"], "names no function"),
        (["some_networks:failing"], "some_networks.py, line 19, in failing: failing() gave KeyError: 'weights'"),
        (["some_networks.py:failing"], "some_networks.py, line 19, in failing: failing() gave KeyError: 'weights'"),
        (["wrong.py:network"], "wrong.py: importing it gave SyntaxError: invalid syntax (wrong.py, line 1)"),
        (["leaving.py:network"], "leaving.py, line 2, in <module>: importing it gave SystemExit: 3"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(folder: Path, arguments: list[str], problem: str) -> None:
    before = sorted(folder.iterdir())
    done = export(arguments[0], "m.nnef", *arguments[1:])
    assert done.exit_code == 1, done.output
    assert problem in done.output
    assert "Traceback" not in done.output
    assert "doctor" not in done.output  # which looks at models, and there is none
    assert [one for one in sorted(folder.iterdir()) if one.name != "__pycache__"] == before
