"""The architectures that kernels are written for, as data: what LLVM is told, and what plans need to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.isa import Isa

from tract_core.frozen import frozen

WARP: Final = 32
"""How many threads go in step."""

MOST_THREADS: Final = 1024
"""Threads that a block has at most."""

ACCESS_BYTES: Final = 16
"""Bytes that one thread reads or writes at once, at most."""

TRIPLE: Final = "nvptx64-nvidia-cuda"

LAYOUT: Final = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
"""How LLVM lays out memory for that triple."""

PTX: Final = Isa(
    "ptx",
    "nvptx64",
    "",
    "",
    (),
    vector_bytes=ACCESS_BYTES,
    registers=255,
    masks_bits=1 << 10,
    fma=True,
    half=True,
    rounds=True,
    scales=(),
    dots=(),
    pause=(),
    any_nan=True,  # all lower bits are set
)
"""What the language of kernels knows of the instructions of one thread."""


@frozen
class Arch:
    """An architecture.

    ``name``: as LLVM and ``ptxas`` call it; ``capability``: the least compute capability of a device, times ten.
    ``exact``: whether such code runs on devices of that capability only. ``shared_bytes``: shared memory that a block
    may have. ``ptx``: the version of PTX that it is written in, times ten.
    """

    name: str
    capability: int
    exact: bool
    shared_bytes: int
    ptx: int


ARCHS: Final = (
    Arch("sm_80", 80, exact=False, shared_bytes=163 << 10, ptx=80),
    Arch("sm_89", 89, exact=False, shared_bytes=99 << 10, ptx=80),
    Arch("sm_90", 90, exact=False, shared_bytes=227 << 10, ptx=80),
    Arch("sm_90a", 90, exact=True, shared_bytes=227 << 10, ptx=80),
    Arch("sm_100", 100, exact=False, shared_bytes=227 << 10, ptx=86),
    Arch("sm_100a", 100, exact=True, shared_bytes=227 << 10, ptx=86),
)
"""From the oldest to the newest. What is written for one that is not exact, drivers compile for all newer devices."""


def arch_named(name: str) -> Arch | None:
    """The architecture of a name, if there is one."""
    return next((one for one in ARCHS if one.name == name), None)


def arch_for(capability: int) -> Arch | None:
    """The best architecture for a device of a compute capability, times ten; ``None`` where it is too old."""
    found: Sequence[Arch] = [
        one for one in ARCHS if one.capability == capability or (one.capability < capability and not one.exact)
    ]
    return found[-1] if found else None
