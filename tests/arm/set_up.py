"""A Python for 64-bit ARM on any Debian, in one folder: ``python tests/arm/set_up.py``, and ``.venv-arm/bin/python``.

Packages of Debian are unpacked, not installed, so nobody has to be root. QEMU runs them, as the system has it, or
unpacked too. Libraries are the registry's wheels for ARM, and the project itself is the one that ``make setup``
installed. ``ARM_CPU`` names the processor, for ``qemu-aarch64 -cpu``. What is there already is left as it is.
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
HOME: Final = ROOT / ".venv-arm"
"""Where all of it is; git ignores it."""

NOT_POSSIBLE: Final = 3
"""What the script ends with where this system cannot have such a Python."""

DISTRIBUTIONS: Final = (".", *(f"plugins/tract_{name}" for name in ("cpu", "llvm", "nnef", "onnx", "pulse")))
LIBRARIES: Final = ("python3", "libstdc++6", "libgomp1")
"""Packages of Debian for ARM, each with what it depends on."""
EMULATOR: Final = "qemu-user-static"
PLATFORMS: Final = ("manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in (17, 26, 27, 28)))
"""Of wheels that run on the oldest Debian with Python 3.11."""

LAUNCHER: Final = """#!/bin/sh
# Written by tests/arm/set_up.py. Programs of this computer are not for that processor, so none is found.
exec {emulator} -cpu "${{ARM_CPU:-max}}" -L {root} -0 "$0" -E PATH={bin} -E LD_LIBRARY_PATH= \\
  -E PYTHONHOME={root}/usr -E PYTHONPATH="{paths}:$PYTHONPATH" {root}/usr/bin/{name} "$@"
"""


class NotPossible(Exception):
    """Why there can be no such Python here."""


def main() -> int:
    """Set up what is missing. Returns the status to end with."""
    try:
        emulator, root = _emulator(), unpacked(HOME / "root", "arm64", LIBRARIES)
        name = next(one.name for one in sorted((root / "usr/bin").glob("python3.*")) if one.name[8:].isdigit())
        libraries = _libraries(name.removeprefix("python"))
    except NotPossible as why:
        print(f"no Python for ARM here: {why}", file=sys.stderr)
        return NOT_POSSIBLE
    _link_our_own()
    _write_launcher(emulator, root, name, libraries)
    return 0


def _emulator() -> Path:
    """QEMU, which reads and runs programs for ARM."""
    found = shutil.which("qemu-aarch64-static")
    return Path(found) if found else unpacked(HOME / "emulator", "", [EMULATOR]) / "usr/bin/qemu-aarch64-static"


def unpacked(found: Path, architecture: str, packages: Sequence[str]) -> Path:
    """A folder of packages of Debian for an architecture, this computer's if it is empty. Raises NotPossible."""
    unfinished = found.with_name(f"{found.name}.unfinished")
    if found.exists():
        return found
    if not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        raise NotPossible("packages of Debian are unpacked with apt-get and dpkg-deb, which this system lacks")
    state = unfinished / "apt"
    for part in ("state/lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    (state / "state/status").touch()
    options = [f"Dir::State={state}/state", f"Dir::State::status={state}/state/status", f"Dir::Cache={state}/cache"]
    options += ["APT::Sandbox::User=", "APT::Install-Recommends=false"]  # the folder is its caller's own
    options += [f"APT::Architecture={architecture}", f"APT::Architectures={architecture}"] if architecture else []
    apt = ["apt-get", "--quiet", "--quiet", *(part for one in options for part in ("--option", one))]
    for command in (["update"], ["--yes", "--download-only", "install", *packages]):
        if subprocess.run([*apt, *command], stdout=subprocess.DEVNULL, check=False).returncode:
            raise NotPossible(f"apt-get {' '.join(command)} failed")
    for archive in sorted((state / "cache/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", archive, unfinished], check=True)
    shutil.rmtree(state)
    unfinished.rename(found)
    return found


def _libraries(version: str) -> Path:
    """The folder of wheels for ARM and a version of Python: what the project depends on, and what tests want."""
    wanted = sorted({*_dependencies(), *_lines(ROOT / "requirements/arm.txt")})
    found, unfinished = HOME / "libraries", HOME / "libraries.unfinished"
    listing = found / "wanted.txt"
    if listing.exists() and listing.read_text().splitlines() == wanted:
        return found
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
    command += [str(unfinished), "--only-binary", ":all:", "--implementation", "cp", "--python-version", version]
    command += [part for one in PLATFORMS for part in ("--platform", one)]
    if subprocess.run([*command, *wanted], check=False).returncode:
        raise NotPossible("pip found no wheels for ARM")
    (unfinished / listing.name).write_text("".join(f"{one}\n" for one in wanted))
    shutil.rmtree(found, ignore_errors=True)
    unfinished.rename(found)
    return found


def _dependencies() -> list[str]:
    """What our distributions need that is not ours."""
    manifests = [tomllib.loads((ROOT / one / "pyproject.toml").read_text())["project"] for one in DISTRIBUTIONS]
    return [one for manifest in manifests for one in manifest["dependencies"] if not one.startswith("tract-")]


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def _link_our_own() -> None:
    """Have the entry points of our distributions found, as they are installed here."""
    own = HOME / "own"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    installed = Path(next(one for one in sys.path if one.endswith("site-packages")))
    names = ["core" if one == "." else one.rpartition("_")[2] for one in DISTRIBUTIONS]
    for one in (path for name in names for path in installed.glob(f"tract_{name}-*.dist-info")):
        (own / one.name).symlink_to(one)


def _write_launcher(emulator: Path, root: Path, name: str, libraries: Path) -> None:
    paths = [HOME / "own", libraries, *(ROOT / one for one in DISTRIBUTIONS)]
    values: Mapping[str, object] = {
        "emulator": emulator,
        "root": root,
        "bin": HOME / "bin",
        "paths": os.pathsep.join(map(str, paths)),
        "name": name,
    }
    launcher = HOME / "bin" / "python"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(LAUNCHER.format_map(values))
    launcher.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
