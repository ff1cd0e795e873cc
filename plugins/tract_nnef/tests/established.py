"""The established engine, which archives are exchanged with: the wheel `tract`, in an environment of its own.

`make test-interchange` makes that environment. ``TRACT_ESTABLISHED`` can name the interpreter of another one. Each call
is a process of its own, as the engine aborts where it meets what it does not know.

    @interchange
    def test_an_archive_means_the_same_there(tmp_path) -> None:
        model.save(tmp_path / "m.nnef.tgz")
        (y,) = established.run(tmp_path / "m.nnef.tgz", [x])
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pytest

Array = np.ndarray[Any, Any]
Test = TypeVar("Test", bound=Callable[..., object])

_OWN = Path(__file__).parents[3] / ".venv-interchange" / "bin" / "python"
PYTHON = Path(os.environ.get("TRACT_ESTABLISHED") or _OWN)

_RUN = """
import sys, numpy, tract
source, inputs, outputs = sys.argv[1:]
model = tract.nnef().with_tract_extra().with_onnx().with_tract_transformers().load(source).into_runnable()
given = numpy.load(inputs)
found = model.run([given[str(place)] for place in range(len(given.files))])
numpy.savez(outputs, **{str(place): one.to_numpy() for place, one in enumerate(found)})
"""
_STREAM = """
import sys, numpy, tract
source, inputs, outputs = sys.argv[1:]
state = tract.nnef().with_tract_extra().with_onnx().with_pulse().load(source).into_runnable().spawn_state()
given = numpy.load(inputs)
found = [state.run([given[str(turn)]]) for turn in range(len(given.files))]
numpy.savez(outputs, **{str(turn): one[0].to_numpy() for turn, one in enumerate(found)})
"""
_PULSE = """
import json, sys, tract
source, target, pulse, symbol = sys.argv[1:]
model = tract.nnef().with_tract_extra().with_onnx().load(source)
model.transform(json.dumps({"name": "pulse", "pulse": pulse, "symbol": symbol}))
tract.nnef().with_tract_extra().with_onnx().with_pulse().write_model_to_dir(model, target)
"""
_WRITE = """
import sys, tract
source, target = sys.argv[1:]
if source.endswith(".onnx"):
    model = tract.onnx().load(source).into_model()
else:
    model = tract.nnef().with_tract_extra().with_onnx().load(source)
writer = tract.nnef().with_tract_extra().with_onnx()
{"d": writer.write_model_to_dir, "r": writer.write_model_to_tar, "z": writer.write_model_to_tar_gz}[
    "z" if target.endswith("gz") else "r" if target.endswith(".tar") else "d"
](model, target)
"""


_RUN_EACH = """
import json, os, signal, sys, numpy, tract
def run(folder):
    loader = tract.nnef().with_tract_extra().with_onnx().with_tract_transformers().with_pulse()
    model = loader.load(folder).into_runnable()
    given = numpy.load(folder + "/given.npz")
    found = model.run([given[str(place)] for place in range(len(given.files))])
    numpy.savez(folder + "/found.npz", **{str(place): one.to_numpy() for place, one in enumerate(found)})
for folder in json.load(open(sys.argv[1])):
    if os.fork() == 0:
        signal.alarm(10)  # some archives it never comes to an end with
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            run(folder)
        except BaseException as error:
            open(folder + "/refusal.txt", "w").write(str(error))
        os._exit(0)
    os.wait()
"""


class Refused(Exception):
    """The engine does not take an archive, or does not run it; with what it says."""


def interchange(test: Test) -> Test:
    """Decorator: the test needs the engine, and is skipped without it."""
    missing = pytest.mark.skipif(not PYTHON.exists(), reason="the established engine: run `make test-interchange`")
    return pytest.mark.interchange(missing(test))


def run(archive: Path, inputs: Sequence[Array]) -> list[Array]:
    """What an archive computes there. Raises Refused."""
    with TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, **{str(place): one for place, one in enumerate(inputs)})
        there(_RUN, archive, given, found)
        with np.load(found) as arrays:
            return [arrays[str(place)] for place in range(len(arrays.files))]


def run_each(folders: Sequence[Path], inputs: Sequence[Sequence[Array]]) -> list[list[Array] | str]:
    """What each of several archives that are folders computes there, or why it is refused; files are left in them."""
    with TemporaryDirectory() as aside:
        for folder, given in zip(folders, inputs, strict=True):
            np.savez(folder / "given.npz", **{str(place): one for place, one in enumerate(given)})
        listed = Path(aside) / "folders.json"
        listed.write_text(json.dumps([str(folder) for folder in folders]))
        there(_RUN_EACH, listed)
    return [_outcome(folder) for folder in folders]


def _outcome(folder: Path) -> list[Array] | str:
    if (folder / "found.npz").exists():
        with np.load(folder / "found.npz") as arrays:
            return [arrays[str(place)] for place in range(len(arrays.files))]
    refusal = folder / "refusal.txt"
    return refusal.read_text().partition("tack backtrace")[0] if refusal.exists() else "the process ended"


def stream(archive: Path, pulses: Sequence[Array]) -> list[Array]:
    """What a pulsed model with one input and one output gives for each pulse, in one state. Raises Refused."""
    with TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, **{str(turn): one for turn, one in enumerate(pulses)})
        there(_STREAM, archive, given, found)
        with np.load(found) as arrays:
            return [arrays[str(turn)] for turn in range(len(arrays.files))]


def pulse(source: Path, target: Path, size: int, symbol: str = "S") -> None:
    """Load an archive there, let its model take pulses, and write that as a folder. Raises Refused."""
    there(_PULSE, source, target, str(size), symbol)


def write(source: Path, target: Path, seconds: float = 300) -> None:
    """Load an ONNX file or an archive there, and write it from there: a tar file by its ending, else a folder.

    Raises Refused, also where that takes more than ``seconds``.
    """
    there(_WRITE, source, target, seconds=seconds)


def there(code: str, *arguments: Path | str, seconds: float = 300) -> None:
    """Run a program there, which finds its arguments in ``sys.argv[1:]``. Raises Refused, with what it said."""
    command = [PYTHON, "-c", code, *arguments]
    quiet = {**os.environ, "RUST_BACKTRACE": "0"}  # what it refuses is said in time, without a trace
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=PYTHON.anchor, env=quiet, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"it did not come to an end in {seconds} s") from None
    if done.returncode:
        said, _, _ = done.stderr.partition("tack backtrace")
        raise Refused(said[-3000:])
