"""Programs for processors of another kind, built by a cross compiler of Debian and run by QEMU."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from object_program import Work, build, given_by

_SECONDS: Final = 300


class Machine(NamedTuple):
    """``compiler``: of C, by its name; ``emulators``: names of QEMU; ``processor``: what it is told to be."""

    compiler: str
    emulators: tuple[str, str]
    processor: str

    @property
    def lacks(self) -> str:
        """What is not here that programs want, empty for nothing."""
        wanted = [] if _found(self.compiler) else [self.compiler]
        return ", ".join([*wanted, *([] if self.emulator else [self.emulators[0]])])

    @property
    def emulator(self) -> str | None:
        """QEMU."""
        return next(filter(None, map(_found, self.emulators)), None)


def _machine(compiler: str, emulator: str, processor: str) -> Machine:
    return Machine(f"{compiler}-gcc", (emulator, f"{emulator}-static"), processor)


_ARM: Final = ("arm-linux-gnueabihf", "qemu-arm")
_RISCV: Final = ("riscv64-linux-gnu", "qemu-riscv64")
MACHINES: Final[Mapping[str, Machine]] = {
    "armv7": _machine(*_ARM, "cortex-a9"),
    "armv7+vfpv4": _machine(*_ARM, "cortex-a7"),
    "riscv64": _machine(*_RISCV, "rv64"),
    "riscv64+v": _machine(*_RISCV, "rv64,v=true,vext_spec=v1.0"),
}
"""For each target one of the least processors that it is for."""


def _tools() -> Path | None:
    """The folder in which packages were unpacked, as `tests/arm/get_compilers.py` does."""
    found = Path(__file__).parents[3] / ".venv-objects/tools/usr"
    return found if found.exists() else None


def _found(name: str) -> str | None:
    tools = _tools()
    return shutil.which(name) or (shutil.which(name, path=str(tools / "bin")) if tools else None)


def build_emulated(target: str, folder: Path, sources: Sequence[str]) -> None:
    """Build ``main.exe`` of what is in a folder."""
    command = [*_compiler(target), "-std=c99", "-O1", *sources, "-o", "main.exe"]
    subprocess.run(command, cwd=folder, env=_settings(), check=True)


def run_built(target: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run it on a processor for the target."""
    emulator, processor = MACHINES[target].emulator, MACHINES[target].processor
    assert emulator is not None
    command = [emulator, "-cpu", processor, "./main.exe"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)


def run_emulated(works: Sequence[Work], target: str, folder: Path) -> list[list[np.ndarray]]:
    """What each model gives on a processor for a target. Builds and runs one program in a folder."""
    build(works, folder, _compiler(target), settings=_settings())
    said = run_built(target, folder)
    assert said.returncode == 0, said.stderr
    return given_by(works, folder)


def _compiler(target: str) -> list[str]:
    found = _found(MACHINES[target].compiler)
    assert found is not None
    return [found, "-static"]


def _settings() -> dict[str, str]:
    """The environment in which compilers run that were unpacked."""
    settings, tools = dict(os.environ), _tools()
    if tools is not None:
        settings["LD_LIBRARY_PATH"] = str(tools / "lib/x86_64-linux-gnu")
        settings["PATH"] = f"{tools / 'bin'}{os.pathsep}{settings['PATH']}"
    return settings
