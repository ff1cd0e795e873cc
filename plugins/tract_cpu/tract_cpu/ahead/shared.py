"""Shared libraries out of object files, by a compiler that is there: nothing of ours links for a system."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tract_core.errors import Unsupported
from tract_cpu.ahead.targets import NATIVE, ObjectTarget

COMPILERS: Final = ("cc", "gcc", "clang")

_SECONDS: Final = 120
"""How long linking may take."""


def shared_library(code: bytes | bytearray, target: ObjectTarget) -> bytes:
    """A shared library for this machine. Raises Unsupported for another one, without a compiler, or where it fails."""
    if target.name != NATIVE:
        told = " ".join(_command(COMPILERS[0], "FILE.o", "FILE.so"))
        hint = f"write an object file, and link it where a compiler for it is, as by: {told}"
        raise Unsupported(f"shared libraries are linked for this machine only, not for {target.name}", hint=hint)
    compiler = next((one for one in COMPILERS if shutil.which(one)), None)
    if compiler is None:
        raise Unsupported(f"no compiler links here: none of {', '.join(COMPILERS)} was found", hint="write FILE.o")
    with tempfile.TemporaryDirectory() as folder:
        source, found = Path(folder) / "model.o", Path(folder) / "model.so"
        source.write_bytes(code)
        command = _command(compiler, str(source), str(found))
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if done.returncode:
            problem = f"{compiler} could not link: {done.stderr.strip() or done.returncode}"
            raise Unsupported(problem, hint="write FILE.o, and link it yourself")
        return found.read_bytes()


def _command(compiler: str, source: str, target: str) -> list[str]:
    return [compiler, "-shared", "-o", target, source]
