"""All that is needed to find out why an archive is not what a module computes, in one folder."""

from __future__ import annotations

import logging
import os
import platform
import shlex
import shutil
import sys
import tarfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

from tract_core.saving import whole_file
from tract_torch.established.tract_cli import Paths, TractCli
from tract_torch.tolerance import TractCheckTolerance

logger: Final = logging.getLogger("tract_torch")

ONNX_FILE: Final = "model_exported_by_torch.onnx"
ONNX_FOLDER: Final = "tract_onnx_converted_model"
ONNX_ARCHIVE: Final = "onnx_converted_by_tract_model.nnef.tgz"

_PACKED: Final = (".tgz", ".tar.gz")
_MOST_NAMES: Final = 10_000
_PACKAGES: Final = ("torch", "numpy", "tract-core", "tract-torch", "tract-nnef", "tract-cpu", "onnx", "transformers")

_REPLAY: Final = """#!/bin/sh
# Runs the archive beside this on inputs.npz, and compares with outputs.npz.
# With an argument, by the command tract at that path; else by tract-core for Python, that of $PYTHON.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
if [ $# -gt 0 ]; then
  tract=$1
  case $tract in
    */*) tract=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
  esac
  cd "$here" || exit 2
  exec "$tract" {engine}
fi
cd "$here" || exit 2
python=${{PYTHON:-{python}}}
command -v "$python" >/dev/null 2>&1 || python=python3
exec "$python" -m tract_core {own}
"""


def write_debug_bundle(
    debug_bundle_path: Paths,
    archive: Paths,
    error: BaseException,
    *,
    input_bundle_path: Path,
    output_bundle_path: Path,
    tolerance: TractCheckTolerance | str,
    command: TractCli | None = None,
    second: Callable[[Path], None] | None = None,
) -> Path | None:
    """Write a bundle, and return where it is: at ``debug_bundle_path``, with a number behind where something is.

    It is a folder, packed and compressed where the path ends in ``.tgz`` or ``.tar.gz``:

    - ``torch_to_nnef``: what ``error`` says, the archive and its content, inputs and outputs, and ``run.sh``, which
      runs it again;
    - ``versions``: of everything that took part; ``command``: the one that found the error, if any;
    - what ``second`` writes: the same module by way of ONNX.

    A bundle that cannot be written is told in the log: it is the error before that counts.
    """
    target = Path(debug_bundle_path)
    ending = next((one for one in _PACKED if target.name.endswith(one)), "")
    folder = _free(target.with_name(target.name.removesuffix(ending)), ending)
    try:
        own = folder / "torch_to_nnef"
        own.mkdir(parents=True)
        (own / "io_iso_error.log").write_text(f"{error}\n")
        name = _copy_archive(Path(archive), own)
        shutil.copyfile(input_bundle_path, own / "inputs.npz")
        shutil.copyfile(output_bundle_path, own / "outputs.npz")
        _write_replay(own / "run.sh", name, TractCheckTolerance(tolerance))
        (folder / "versions").write_text(_versions(command))
        if second is not None:
            second(folder)
        found = _packed(folder, ending) if ending else folder
    except Exception:
        logger.exception("the debug bundle %s could not be written", target)
        return None
    error.add_note(f"a debug bundle is at {found}")
    logger.info("a debug bundle is at %s", found)
    return found


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Path:
    """Write an ``.npz`` file, with floats of 16 bits in 32, which every engine reads. Raises InputError."""
    wide = {
        name: array.astype(np.float32) if array.dtype.kind == "V" or array.dtype == np.float16 else array
        for name, array in arrays.items()
    }
    with whole_file(path) as file:
        np.savez(file, **wide)  # pyright: ignore[reportArgumentType]: names of arrays are not those of parameters
    return path


def _free(path: Path, ending: str) -> Path:
    """A folder of that name, or of that with a number behind, where neither it nor what it is packed to is there."""
    names = [path.name, *(f"{path.name}_{number}" for number in range(_MOST_NAMES))]
    paths = (path.with_name(name) for name in names)
    return next(one for one in paths if not any(map(os.path.lexists, (one, one.with_name(one.name + ending)))))


def _copy_archive(archive: Path, folder: Path) -> str:
    """The archive, and what is in it, beside it. Returns its name."""
    if archive.is_dir():
        shutil.copytree(archive, folder / "model.nnef")
        return "model.nnef"
    name = "model.nnef.tgz" if archive.name.endswith(_PACKED) else "model.nnef.tar"
    shutil.copyfile(archive, folder / name)
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    return name


def _write_replay(path: Path, archive: str, tolerance: TractCheckTolerance) -> None:
    run = ["run", "--input-from-bundle", "inputs.npz", "--assert-output-bundle", "outputs.npz", "--allow-float-casts"]
    run += ["--approx", tolerance.value]
    flags = [f"--nnef-tract-{name}" for name in ("core", "pulse", "extra", "transformers")]
    words = {"engine": [archive, *flags, "-O", *run], "own": [archive, *run], "python": [sys.executable]}
    path.write_text(_REPLAY.format(**{name: shlex.join(several) for name, several in words.items()}))
    path.chmod(0o755)


def _versions(command: TractCli | None) -> str:
    lines = [f"python {platform.python_version()} ({platform.python_compiler()})", f"system {platform.platform()}"]
    if command is not None:
        lines.append(f"tract {command.version} ({command.tract_path})")
    for name in _PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lines.append(f"{name} is not installed")
    return "".join(f"{line}\n" for line in lines)


def _packed(folder: Path, ending: str) -> Path:
    """The folder as one compressed file, whole, in its place."""
    path = folder.with_name(folder.name + ending)
    with whole_file(path) as file, tarfile.open(fileobj=file, mode="w:gz") as packed:
        packed.add(folder, folder.name)
    shutil.rmtree(folder)
    return path
