"""Completion in real shells: a line is typed, Tab is pressed, and what then stands there is read.

Fish can be asked for its offers; into bash and zsh the line is typed, in a terminal.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import onnx
import pytest
from onnx import TensorProto, helper

pty = pytest.importorskip("pty")

START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
SETUP = {
    "bash": 'eval "$(_TRACT_COMPLETE=bash_source tract)"',
    "zsh": 'unsetopt beep; autoload -U compinit; compinit -D -u; eval "$(_TRACT_COMPLETE=zsh_source tract)"',
}
SECONDS = 60

TYPED = {
    "tract sma": "small.onnx",
    "tract sub": r"sub\ dir/",
    r"tract sub\ dir/": r"sub\ dir/an\ other.onnx",
    "tract he": "help",
    "tract small.onnx ru": "run",
    "tract small.onnx --pass=de": "--pass=declutter",
    "tract small.onnx run -r ref": "reference",
    "tract small.onnx run --set ": "B=",
    "tract small.onnx -i x": "x:",
    "tract small.onnx run --input-from-npz no": "notes.txt",
}
"""What is typed, and the word that stands at its end after Tab, as the shell has to write it."""


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "TERM": "dumb", "LC_ALL": "C.UTF-8", "COLUMNS": "200"}


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            START[name], stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment(), start_new_session=True
        )
        os.close(slave)
        self.press(f"{SETUP[name]}\necho set''up\n")
        self.read_until("setup\r")

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    def read_until(self, wanted: str) -> str:
        """What appears until ``wanted``, a regular expression, does."""
        seen, end = "", monotonic() + SECONDS
        while not re.search(wanted, seen):
            assert monotonic() < end, seen
            if select.select([self.master], [], [], 0.2)[0]:
                seen += os.read(self.master, 65536).decode(errors="replace")
        return seen

    def completed(self, line: str) -> str:
        """The line that stands there after Tab."""
        # Then a bar is typed behind it, and in front of it the command that shows the whole line as it is.
        self.press(f"{line}\t|'\x01printf '<%s>' '\n")
        return re.findall(r"<([^<>]*)\|>", self.read_until(r"<[^<>]*\|>"))[-1]

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def folder(model: Path) -> Path:
    """A folder with a model, another one in a folder, and a file that is none."""
    (model.parent / "sub dir").mkdir()
    shutil.copy(model, model.parent / "sub dir" / "an other.onnx")
    (model.parent / "notes.txt").touch()
    return model.parent


@pytest.fixture(params=list(START))
def terminal(request: pytest.FixtureRequest, folder: Path) -> Iterator[Terminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    started = Terminal(request.param, folder)
    yield started
    started.close()


def test_what_stands_there_after_tab(terminal: Terminal) -> None:
    for line, wanted in TYPED.items():
        found = terminal.completed(line)
        assert found.rstrip(" ").endswith(wanted), line
        open_end = wanted.endswith(("/", "=", ":"))
        assert not (open_end and found.endswith(" ")), f"{line}: no space where the word goes on"


@pytest.fixture
def offers(folder: Path) -> Callable[[str], list[str]]:
    """What fish offers for a line."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")

    def ask(line: str) -> list[str]:
        script = "_TRACT_COMPLETE=fish_source tract | source; complete -C $argv[1]"
        asked = ["fish", "--no-config", "-c", script, line]
        done = subprocess.run(asked, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
        return [offer.partition("\t")[0] for offer in done.stdout.splitlines()]

    return ask


def test_what_fish_offers(offers: Callable[[str], list[str]]) -> None:
    for line, wanted in TYPED.items():
        assert offers(line) == [wanted.replace("\\ ", " ")], line
    assert {"dump", "run", "doctor"} <= set(offers("tract small.onnx "))
    assert {"small.onnx", "sub dir/", "help"} <= set(offers("tract "))
    assert "notes.txt" not in offers("tract ")


@pytest.fixture
def trap(folder: Path) -> Path:
    """A file that is there once a name in the model was run as a command."""
    trap = folder / "trap"
    names = [f"x$(touch {trap})", f"y`touch {trap}`;touch {trap}|'\"$HOME"]
    facts = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"S{name[1:]}"]) for name in names]
    nodes = [helper.make_node("Relu", names[:1], ["z"])]
    graph = helper.make_graph(nodes, "g", facts, [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "trap.onnx")
    return trap


def test_names_in_a_file_stay_words(terminal: Terminal, trap: Path) -> None:
    for line in ("tract trap.onnx -i x", "tract trap.onnx -i y", "tract trap.onnx --set S"):
        assert terminal.completed(line) == line
        terminal.press(f"{line}\t; echo do''ne\n")
        terminal.read_until("done\r")
        assert not trap.exists(), line
