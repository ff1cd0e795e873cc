"""Models at addresses that only TensorFlow's file systems know: copied by a Python that has tensorflow-io.

    python -m tract_tensorflow.remote.fetch hdfs://host/models/spotter spotter [--python PYTHON] [--max-bytes N]

That package wants a TensorFlow, a NumPy and an ml-dtypes of its own, which cannot lie beside those of this project; so
it is in another environment, whose Python runs `copying`. One file at a URL that fsspec knows needs nothing of
this: ``tract.load`` fetches it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import Any, Final, cast

from tract_core.api.given import is_url
from tract_core.errors import InputError, LimitExceeded, ModelError, PluginError, TractError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.saving import whole_folder

VARIABLE: Final = "TRACT_TENSORFLOW_IO"
"""The environment variable that names the Python with tensorflow-io."""

_PROGRAM: Final = Path(__file__).with_name("copying.py")

_MAKE: Final = (
    "make its environment, with Python 3.9 to 3.12: python3.11 -m venv tensorflow-io;"
    ' tensorflow-io/bin/pip install "tensorflow-io==0.37.1" "tensorflow~=2.16.0";'
    f" export {VARIABLE}=$PWD/tensorflow-io/bin/python"
)


def fetch_model(
    address: str,
    folder: str | os.PathLike[str],
    *,
    python: str | os.PathLike[str] | None = None,
    limits: LoadLimits = DEFAULT_LIMITS,
) -> Path:
    """Copy a SavedModel, or a file, from an address into a new folder; returns the path that `tract.load` takes.

    ``address``: as TensorFlow has it, ``s3://bucket/model``. ``folder``: where nothing is yet; it is there when all was
    copied, and not at all otherwise. ``python``: that of the environment with tensorflow-io, by default what the
    environment variable TRACT_TENSORFLOW_IO names. ``limits``: ``max_bytes`` of all files together, within
    ``deadline_s`` seconds. Raises InputError for what is no address, and for a folder that is there; PluginError, with
    the commands that make the environment, where no Python is named or it does not run; LimitExceeded, ModelError.
    """
    if not is_url(address):
        raise InputError("wanted an address, as s3://bucket/model", where=address[:200])
    program = _python(python)
    with whole_folder(folder) as unfinished:
        told = _run([program, "-I", str(_PROGRAM), address, str(unfinished), str(limits.max_bytes)], address, limits)
        if "error" in told:
            kind = LimitExceeded if "are allowed" in str(told["error"]) else ModelError
            hint = (
                "LoadLimits(max_bytes=...), or --max-bytes, allows more"
                if kind is LimitExceeded
                else "check the address"
            )
            raise kind(f"cannot be copied: {told['error']}", where=address, hint=hint)
        there = [path for path in sorted(unfinished.rglob("*")) if path.is_file()]
        if not there:
            raise ModelError("nothing was copied", where=address)
    alone = len(there) == 1 and there[0].name != "saved_model.pb"
    return Path(folder) / there[0].name if alone else Path(folder)


def _python(given: str | os.PathLike[str] | None) -> str:
    named = os.fspath(given) if given is not None else os.environ.get(VARIABLE, "")
    if not named:
        raise PluginError("nothing says which Python has tensorflow-io", where=VARIABLE, hint=_MAKE)
    if not Path(named).is_file():
        raise PluginError("there is no such Python", where=named, hint=_MAKE)
    return named


def _run(command: Sequence[str], address: str, limits: LoadLimits) -> dict[str, Any]:
    """What the program says. Raises PluginError, LimitExceeded."""
    talk = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=min(limits.deadline_s, TIMEOUT_MAX),
            check=False,
            env=talk,
        )
    except subprocess.TimeoutExpired:
        problem = f"it takes longer than {limits.deadline_s:g} seconds"
        raise LimitExceeded(
            problem, where=address, hint="LoadLimits(deadline_s=...), or --seconds, allows more"
        ) from None
    except OSError as error:
        raise PluginError(f"cannot be run: {error.strerror or error}", where=command[0], hint=_MAKE) from error
    return _said(done, command[0])


def _said(done: subprocess.CompletedProcess[bytes], program: str) -> dict[str, Any]:
    """The object in the last line that a program printed. Raises PluginError where there is none."""
    last = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
    try:
        told: Any = json.loads(last)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:300]
        raise PluginError(f"it ends with status {done.returncode}: {said}", where=program, hint=_MAKE)
    return cast("dict[str, Any]", told)


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy a model as the words of the command line say; prints its path. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tract_tensorflow.remote.fetch", description="Copies a model by a Python that has tensorflow-io."
    )
    parser.add_argument("address", metavar="ADDRESS", help="of a SavedModel's folder, or of a file")
    parser.add_argument("folder", metavar="FOLDER", help="where the copy goes; nothing may be there")
    parser.add_argument("--python", help=f"that of the environment with tensorflow-io; else {VARIABLE} names it")
    parser.add_argument("--max-bytes", type=int, default=DEFAULT_LIMITS.max_bytes, help="of all files together")
    parser.add_argument("--seconds", type=float, default=DEFAULT_LIMITS.deadline_s, help="that it may take")
    given = parser.parse_args(arguments)
    limits = replace(DEFAULT_LIMITS, max_bytes=given.max_bytes, deadline_s=given.seconds)
    try:
        found = fetch_model(given.address, given.folder, python=given.python, limits=limits)
    except TractError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    sys.stdout.write(f"{found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
