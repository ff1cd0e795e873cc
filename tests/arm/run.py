"""Run tests of the CPU runtime on emulated processors for 64-bit ARM: ``python tests/arm/run.py short|whole [PYTEST]``.

What follows the part is for pytest, as ``-n 2``. ``ARM_CPUS`` names the processors for the whole of it.
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from set_up import HOME, NOT_POSSIBLE, ROOT
from set_up import main as set_up

MOST: Final = "max,sve=off"
SVE: Final = "max,sve-default-vector-length=32"
PROCESSORS: Final = (MOST, "cortex-a72", "neoverse-n1", SVE, "a64fx")
"""With all sums of products, with nothing beyond the first ones, with sums of bytes; SVE of 256 and 512 bits."""

NETWORKS: Final = "tests/arm/test_networks.py"
KIT: Final = ("--pyargs", "tract_core.testing", "--tract-runtime", "cpu")
_OF_LLVM: Final = [f"plugins/tract_llvm/tests/test_{name}.py" for name in ("meanings", "processor", "relocations")]

WHOLE: Final[Sequence[Sequence[str]]] = (
    ("plugins/tract_llvm/tests",),
    ("plugins/tract_cpu/tests", NETWORKS),
    KIT,
    ("plugins/tract_onnx/tests/test_onnx_backend_suite.py", "-k", "cpu and decluttered"),
)
"""Each run of pytest, on every processor: ours, what every runtime must pass, and ONNX's own cases."""

FEW: Final[Mapping[str, Sequence[str]]] = {
    MOST: ("ResNet-50 int8", "BERT-base bf16", "LSTM"),
    "cortex-a72": ("VGG-style", "LSTM"),
    "neoverse-n1": ("ResNet-50 int8",),
}
"""Networks that are run in minutes, by processors."""

_FIRST: Final = (*_OF_LLVM, "plugins/tract_cpu/tests/test_linker.py")
"""What is run before them, on the first processor."""


def _short() -> dict[str, Sequence[Sequence[str]]]:
    """Each run of pytest of the short part, by processors."""
    words = {one: [" and ".join(name.split()) for name in names] for one, names in FEW.items()}
    networks = {one: (NETWORKS, "-k", " or ".join(f"({each})" for each in names)) for one, names in words.items()}
    return {one: [_FIRST, tests] if one == MOST else [tests] for one, tests in networks.items()}


def main(part: str, options: Sequence[str]) -> int:
    """Run a part. Returns the status to end with: that no such Python can be here fails the whole alone."""
    if status := set_up():
        return 0 if part == "short" and status == NOT_POSSIBLE else status
    networks = HOME / "networks"
    networks.mkdir(exist_ok=True)
    names = sorted({name for few in FEW.values() for name in few}) if part == "short" else []
    subprocess.run([sys.executable, ROOT / "tests/arm/write_networks.py", networks, *names], check=True)
    processors = os.environ.get("ARM_CPUS", "").split() or PROCESSORS
    chosen = _short() if part == "short" else dict.fromkeys(processors, WHOLE)
    failed = [
        f"{processor}: {' '.join(tests)}"
        for processor, runs in chosen.items()
        for tests in runs
        if not _passes(processor, [*tests, *options])
    ]
    print(*(f"failed on {one}" for one in failed), sep="\n")
    return bool(failed)


def _passes(processor: str, tests: Sequence[str]) -> bool:
    print(f"{processor}: {' '.join(tests)}", flush=True)
    environment = {**os.environ, "ARM_CPU": processor, "TRACT_CACHE": str(HOME / "cache")}
    command: list[str | Path] = [HOME / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    if not any(one.startswith("plugins/tract_llvm") for one in tests):  # which try LLVM itself there
        environment |= _native_compiler()
        command += ["-p", "native_compilers"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def _native_compiler() -> dict[str, str]:
    """What `native_compilers` has to know, and where it is."""
    llvmlite = find_spec("llvmlite")
    assert llvmlite is not None  # the project depends on it
    assert llvmlite.origin is not None  # it is a package of files
    places = [ROOT / "plugins/tract_llvm", Path(llvmlite.origin).parents[1]]
    return {
        "ARM_COMPILER": sys.executable,
        "ARM_COMPILER_PLACES": os.pathsep.join(map(str, places)),
        "PYTHONPATH": str(ROOT / "tests/arm"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
