"""What the compiler of NVIDIA's toolkit says of a kernel, where it is installed: registers, and what has no room there.

It is in the wheel `nvidia-cuda-nvcc`. Nothing is executed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tract_core.errors import RunError
from tract_core.frozen import frozen
from tract_cuda.language.arch import Arch
from tract_cuda.ptx import Ptx


@frozen
class Facts:
    """``registers``: of a thread; ``spilled``: bytes that it writes to memory for want of them; ``stack``: in bytes."""

    registers: int
    spilled: int
    stack: int


@cache
def ptxas() -> Path | None:
    """Where the compiler is; ``None`` where it is not installed."""
    return next(_places(), None)


def facts(ptx: Ptx, arch: Arch) -> Facts:
    """What becomes of a kernel on an architecture. Raises RunError with what the compiler says where it refuses it."""
    program = ptxas()
    assert program is not None, "who asks looks whether it is there"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(ptx.text)
        command = [program, "-v", f"-arch={arch.name}", file, "-o", file.with_suffix(".cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode:
        raise RunError(f"ptxas refuses kernel {ptx.name} for {arch.name}: {said.strip()}")
    return Facts(
        *(_number(said, one) for one in (r"Used (\d+) reg", r"(\d+) bytes spill stores", r"(\d+) bytes stack"))
    )


def _number(said: str, pattern: str) -> int:
    found = re.search(pattern, said)
    return int(found.group(1)) if found else 0


def _places() -> Iterator[Path]:
    on_path, wheels = shutil.which("ptxas"), find_spec("nvidia")
    if on_path is not None:
        yield Path(on_path)
    for folder in (wheels.submodule_search_locations or ()) if wheels is not None else ():
        yield from sorted(Path(folder).glob("*/bin/ptxas"))
