"""Whatever a file holds, no byte that the command prints steers a terminal: not in a pipe, and not on a terminal.

Hostile texts are put into every text field of a model in turn, and every command prints what it has to say about it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click
import click.testing
import hostile_model
import numpy as np
import onnx
import pytest
import tract_onnx.frontend
from click.testing import CliRunner, Result

import tract_core.model.names
from tract_core.cli.frame import app
from tract_core.cli.printing import progress

HOSTILE = "\x1b[38;5;213m\x1b]0;title\x07\x9b2J\x08\r\x00\x7f\u202e\u2066\u061c\u2028\nFORGED"
"""Colours, the title, a cleared screen, marks of writing direction, and a line that the report does not have."""
MILD = HOSTILE.replace("\nFORGED", "")

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

FIRST = ("dump", "doctor", "doctor --json")
"""What is tried with a file that is refused."""
COMMANDS = (
    "dump --const --info --outlet-labels --unfold",
    "dump --cost --invariants --explain --const",
    "dump --audit-json",
    "dump --svg --const",
    "dump --dot",
    "dump --profile --max-loops 1 --input-from-npz {npz}",
    "dump -s --assert-op-only Nothing --assert-output-fact 1,f32",
    "run --input-from-npz {npz} --steps --dump",
    "run --input-from-npz {npz} --json",
    "run --input-from-npz {npz} --save-outputs {out} --assert-output nothing:1,f32=1",
    "run -R",
    "run -R --set Q=1",
    "compare --input-from-npz {npz} --with onnxruntime",
    "compare --input-from-npz {npz} --npz {wrong}",
    "bench --input-from-npz {npz} --max-loops 1",
)
FLAGS = (
    "--pass load dump --info",
    "--debug -i nothing:1,f32",
    '-t select_outputs(outputs:["nothing"])',
    "--debug --limit max_nodes=1",
)


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output and standard error are a wide terminal, on which nothing is so slow that progress is shown."""
    monkeypatch.delenv("TRACT_CHECK_PATCHES", raising=False)
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", 1e9)
    monkeypatch.setenv("COLUMNS", "10000")


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and names of files are taken as they are."""

    def change() -> None:
        monkeypatch.setattr(tract_onnx.frontend, "check_texts", lambda _: None)
        monkeypatch.setattr(tract_core.model.names, "steers", lambda _: False)

    return change


def write(folder: Path, proto: onnx.ModelProto, values: str = "") -> dict[str, Path]:
    """The model, inputs for it whose texts end in ``values``, and wrong values of its tensors."""
    paths = {name: folder / f"{name}.npz" for name in ("npz", "out", "wrong")}
    inputs = [np.ones((2, 3), np.float32), np.array([f"A{values}", "B"]), np.array(True)]
    names = [info.name.replace("\x00", "") for info in proto.graph.input]
    np.savez(paths["npz"], **dict(zip(names, inputs, strict=True)))
    np.savez(paths["wrong"], y=np.zeros((2, 3), np.float32), u=np.array([f"A{values}", "C"]), z=np.zeros(3))
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return {**paths, "model": folder / "m.onnx"}


def check(result: Result, line: list[str], *, terminal: bool = True) -> None:
    """Nothing steers, and nothing that a file holds begins a line."""
    assert result.exception is None or isinstance(result.exception, SystemExit), line
    for text in (result.stdout, result.stderr):
        assert "\x1b[38;5;213m" not in text, line
        shown = OUR_COLOURS.sub("", text) if terminal else text
        found = STEERING.search(shown)
        assert found is None, (line, shown[max(found.start() - 60, 0) : found.end() + 20])
        assert not re.search("^FORGED", shown, re.MULTILINE), (line, shown)


def statuses(paths: dict[str, Path], commands: Iterable[str], *, terminal: bool = True) -> set[int]:
    """Try every command; the statuses with which they end."""
    found: set[int] = set()
    for command in commands:
        line = [str(paths["model"]), *command.format(**paths).split()]
        result = CliRunner().invoke(app, line, color=terminal)
        check(result, line, terminal=terminal)
        if "json" in command and result.stdout:
            json.loads(result.stdout)
        found.add(result.exit_code)
    return found


MODEL = hostile_model.model()
PLACES = list(hostile_model.texts_in(MODEL))


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_no_text_of_a_file_steers_a_terminal(
    tmp_path: Path, unchecked: Callable[[], None], path: hostile_model.Path
) -> None:
    """Names are refused; where a format would not refuse them, nothing but lines gets through.

    Every third command is tried with each text, and all of them by `make test-long`.
    """
    every = 1 if "TRACT_LONG" in os.environ else 3
    paths = write(tmp_path, hostile_model.with_text(MODEL, path, HOSTILE))
    if statuses(paths, FIRST) == {1}:
        unchecked()
        paths = write(tmp_path, hostile_model.with_text(MODEL, path, MILD))
    statuses(paths, (*COMMANDS, *FLAGS)[PLACES.index(path) % every :: every])


def test_texts_that_a_run_is_given(tmp_path: Path) -> None:
    assert statuses(write(tmp_path, MODEL, HOSTILE), (*FIRST, *COMMANDS, *FLAGS)) == {0, 1}


def test_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: False, raising=False)
    paths = write(tmp_path, MODEL, HOSTILE)
    assert statuses(paths, (*FIRST, *COMMANDS, *FLAGS), terminal=False) == {0, 1}


@pytest.mark.parametrize("name", ["$(touch gone)", "a b", "a=b", "`id`;", "'", '"', "\\", "i", "*", "N\x1b"])
def test_lines_to_paste_say_what_they_mean(tmp_path: Path, name: str) -> None:
    """Whatever a size or an input is named: a hint that is pasted into a shell runs nothing else."""
    proto = onnx.ModelProto()
    proto.CopyFrom(MODEL)
    for info in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param == "B":
                dim.dim_param = name
    model = write(tmp_path, proto)["model"]
    np.savez(tmp_path / "t.npz", t=np.array(["A"]), b=np.array(True))
    run = [str(model), "run", "-R", "--input-from-npz", str(tmp_path / "t.npz")]
    refused = CliRunner().invoke(app, run)
    (hint,) = re.findall("hint: give it, as in (.*)", refused.stderr)
    assert shlex.split(hint)[0] == "--set"
    assert len(shlex.split(hint)) == 2
    assert CliRunner().invoke(app, [*run, *shlex.split(hint)]).exit_code == 0
    named = hostile_model.with_text(MODEL, ("graph", "input", 0, "name"), name.replace("\x1b", ""))
    refused = CliRunner().invoke(app, [str(write(tmp_path, named)["model"]), "run"])
    (hint,) = re.findall("hint: give it with (--input .*) or --input-from-npz", refused.stderr)
    assert shlex.split(hint) == ["--input", f"x{name}=FILE.npy".replace("\x1b", "")]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_terminal_can_show_every_name(tmp_path: Path, encoding: str) -> None:
    proto = hostile_model.with_text(MODEL, ("graph", "input", 0, "name"), "层é")
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    result = CliRunner(charset=encoding).invoke(app, [str(tmp_path / "m.onnx"), "run"])
    assert result.exit_code == 1
    wanted = "input 'x层é'".encode(encoding, "backslashreplace")
    assert wanted in result.stderr_bytes


def test_what_is_not_ours_is_guarded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a subcommand of a plugin, or a library, may print."""

    def careless(*_: object) -> None:
        sys.stdout.write("a\x1b]0;title\x07\x1b[31mb\x1b[0m\n")
        click.echo(click.style("c\x1b[2J", fg="red"))
        sys.stderr.write("d\x9b2J\n")

    monkeypatch.setattr("tract_core.cli.commands.dump_graph.dump", careless)
    paths = write(tmp_path, MODEL)
    result = CliRunner().invoke(app, [str(paths["model"])], color=True)
    assert result.stdout == "a\\u001b]0;title\\u0007\x1b[31mb\x1b[0m\n\x1b[31mc\\u001b[2J\x1b[0m\n"
    assert "d\\u009b2J" in result.stderr
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: False, raising=False)
    assert "\x1b" not in CliRunner().invoke(app, [str(paths["model"])], color=True).stdout
