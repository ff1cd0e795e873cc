"""Copies a model from an address of TensorFlow's file systems into a folder, and says in JSON how it went.

A program of its own: ``python -I copying.py ADDRESS FOLDER BYTES``, where TensorFlow is installed, and
tensorflow-io, which knows more addresses; nothing of this project is imported. Of a SavedModel what a model is made of
is copied: its graph, its variables and assets. `fetch` runs it.
"""

# ruff: noqa: T201 (it is a program: what it prints is its answer)

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

PIECE = 1 << 20
"""Bytes that are copied at once."""

MOST_FILES = 10_000

ENTRY = "saved_model.pb"
FOLDERS = ("variables", "assets")


class Refused(Exception):
    """What is not copied, and why."""


def main(address: str, folder: str, most: int) -> int:
    """Print what was copied, ``{"files": N, "bytes": N}``, or ``{"error": TEXT}``. Returns the exit status."""
    without = ""
    try:
        files = importlib.import_module("tensorflow").io.gfile
        try:
            importlib.import_module("tensorflow_io")
        except Exception as error:  # whatever is wrong with it: TensorFlow alone knows some addresses
            without = f" (tensorflow-io is not in use: {error})"
        print(json.dumps(_copied(files, address, folder, most)))
    except Refused as error:
        print(json.dumps({"error": str(error)}))
        return 1
    except Exception as error:  # whatever it is, it is the file system's
        print(json.dumps({"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}{without}"}))
        return 1
    return 0


def _copied(files: Any, address: str, folder: str, most: int) -> dict[str, int]:
    """Copy all files; returns how many they are, and their bytes. Raises Refused for too many."""
    count = copied = 0
    for source, place in _sources(files, address):
        count += 1
        if count > MOST_FILES:
            raise Refused(f"there are more than {MOST_FILES} files")
        copied += _copy(files, source, os.path.join(folder, *place), most - copied, most)
    return {"files": count, "bytes": copied}


def _sources(files: Any, address: str) -> Iterator[tuple[str, list[str]]]:
    """The address of each file, and where it goes."""
    if not _is_folder(files, address):
        yield address, [_checked(address.rstrip("/").rpartition("/")[2])]
        return
    base = address.rstrip("/")
    yield f"{base}/{ENTRY}", [ENTRY]
    for name in FOLDERS:
        if _is_folder(files, f"{base}/{name}"):
            for one in sorted({_checked(one.rstrip("/")) for one in files.listdir(f"{base}/{name}")}):
                if not _is_folder(files, f"{base}/{name}/{one}"):
                    yield f"{base}/{name}/{one}", [name, one]


def _is_folder(files: Any, address: str) -> bool:
    try:
        return bool(files.isdir(address))
    except Exception:  # file systems without folders, as that of HTTP, say that they cannot tell
        return False


def _checked(name: str) -> str:
    """The name of a file. Raises Refused for one that could lead elsewhere."""
    if not re.fullmatch(r"[\w.+=@ -]{1,255}", name) or not name.strip(". "):
        raise Refused(f"a file is called {name[:80]!r}")
    return name


def _copy(files: Any, source: str, target: str, room: int, most: int) -> int:
    """Copy one file; returns how many bytes it has. Raises Refused for more than there is room for."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    size = 0
    with files.GFile(source, "rb") as there, open(target, "xb") as here:
        while part := there.read(PIECE):
            size += len(part)
            if size > room:
                raise Refused(f"it has more than {most} bytes, which are allowed")
            here.write(part)
    return size


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
