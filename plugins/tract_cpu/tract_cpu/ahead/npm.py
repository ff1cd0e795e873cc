"""A model as a package of npm: its module of WebAssembly, and what loads it."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tract_core.errors import InputError
from tract_cpu.ahead.glue import function_names
from tract_cpu.ahead.object_file import CompiledModel
from tract_cpu.ahead.script import script_text, types_text
from tract_cpu.ahead.wasm import module_of

ENDING: Final = ".tgz"

_FOLDER: Final = "package"
"""In which npm looks for files."""


def npm_name(path: Path) -> tuple[str, str]:
    """The name and the version of a package that is called as in ``path``, as npm calls what it packs.

    The version is 1.0.0 where there is none. Raises InputError.
    """
    found = re.fullmatch(
        r"([a-z0-9][a-z0-9_-]*?)(?:-([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?))?", path.name.removesuffix(ENDING)
    )
    if found is None:
        hint = "as digits.tgz, or digits-2.1.0.tgz, in small letters; archives of models are written by cook"
        raise InputError(f"{path.name!r} names no package of npm", hint=hint)
    return found[1], found[2] or "1.0.0"


def web_files(found: CompiledModel, name: str) -> dict[str, bytes]:
    """A module of WebAssembly, what loads it and its types, by the names of their files without a folder."""
    module = f"{name}.wasm"
    return {
        module: module_of(found.code, [*function_names(found.name, is_open=bool(found.sizes)).values()]),
        f"{name}.mjs": script_text(found, module).encode(),
        f"{name}.d.mts": types_text(found).encode(),
    }


def npm_package(found: CompiledModel, name: str, version: str) -> bytes:
    """The content of the package of a model, the same bytes for the same model."""
    types = f"./{name}.d.mts"
    module = f"./{name}.wasm"
    said = {
        "name": name,
        "version": version,
        "description": "A model, compiled by tract.",
        "type": "module",
        "types": types,
        "exports": {".": {"types": types, "default": f"./{name}.mjs"}, module: module},
        "sideEffects": False,
    }
    return _packed({"package.json": f"{json.dumps(said, indent=2)}\n".encode(), **web_files(found, name)})


def _packed(files: Mapping[str, bytes]) -> bytes:
    """Files as a compressed tar, with no time nor owner."""
    held = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=held, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, content in files.items():
            about = tarfile.TarInfo(f"{_FOLDER}/{name}")
            about.size, about.mode = len(content), 0o644
            archive.addfile(about, io.BytesIO(content))
    return held.getvalue()
