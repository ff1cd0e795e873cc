"""Compilers and emulators for 32-bit ARM and RISC-V, in one folder: ``python tests/arm/get_compilers.py``.

Packages of Debian are unpacked, not installed, where the system has not all of them. Tests of objects find them there
(`plugins/tract_cpu/tests/emulated_program.py`), and are skipped where they cannot be had.
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import shutil
import sys
from typing import Final

from set_up import EMULATOR, ROOT, NotPossible, unpacked

COMPILERS: Final = ("arm-linux-gnueabihf", "riscv64-linux-gnu")
EMULATORS: Final = ("qemu-arm-static", "qemu-riscv64-static")
LIBRARIES: Final = ("libc6-dev-armhf-cross", "libc6-dev-riscv64-cross")
FOLDER: Final = ROOT / ".venv-objects/tools"


def main() -> None:
    """Get what is missing, or say why it cannot be had."""
    if all(map(shutil.which, (*(f"{one}-gcc" for one in COMPILERS), *EMULATORS))):
        return
    try:
        unpacked(FOLDER, "", [EMULATOR, *(f"gcc-{one}" for one in COMPILERS), *LIBRARIES])
    except NotPossible as why:
        print(f"no compilers for other processors here: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
