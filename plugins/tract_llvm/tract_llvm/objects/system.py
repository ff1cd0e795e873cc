"""How code for this system calls and is called, as LLVM says it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, NamedTuple


class Convention(NamedTuple):
    """``triple``: LLVM's name for a system on a processor. ``features``: what it wants of the processor besides."""

    triple: str
    features: str = ""


_OF_SYSTEMS: Final[Mapping[tuple[str, str], Convention]] = {
    ("win32", "x86_64"): Convention("x86_64-pc-windows-msvc-elf"),
    # LLVM 22 ends the process where it writes ELF for Windows on ARM. Functions are called as on Linux there, as long
    # as nobody touches register 18, which belongs to the system.
    ("win32", "aarch64"): Convention("aarch64-unknown-linux-gnu", "+reserve-x18"),
    ("darwin", "x86_64"): Convention("x86_64-apple-macosx11.0.0-elf"),
    ("darwin", "aarch64"): Convention("aarch64-apple-macosx11.0.0-elf"),
}
"""The format of object files is ELF everywhere, as our linker reads it."""


def convention(architecture: str, system: str = sys.platform) -> Convention:
    """That of a system of Python's name for it; of Linux where it has no other one."""
    return _OF_SYSTEMS.get((system, architecture), Convention(f"{architecture}-unknown-linux-gnu"))
