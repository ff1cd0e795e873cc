"""What object files leave open in code, by kinds of processors: words of 32 bits that tell where something is.

Sources: System V ABI, supplement for AMD64, section 4.4; Arm, "ELF for the Arm 64-bit Architecture", section 5.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tract_core.frozen import frozen

FitFn = Callable[[int, int, int], int]
"""``(word, place, target)``: the word at a place of memory, as it says where a target is. Raises CannotLink."""


class CannotLink(Exception):
    """What is in an object file, or on this system, is left to LLVM."""


@frozen
class ElfMachine:
    """A kind of processors.

    ``number``: what object files call it. ``fits``: how words are made to fit, by kinds of relocations; ``calls``:
    which of these call functions, those of libraries, too. ``jump``: 8 bytes of code that jump to the address that
    follows them, as libraries may be further away than a word can tell. ``sees_writes``: whether it executes what was
    written without being told.
    """

    number: int
    fits: Mapping[int, FitFn]
    calls: frozenset[int]
    jump: bytes
    sees_writes: bool


def _signed(number: int, bits: int) -> int:
    if not -1 << (bits - 1) <= number < 1 << (bits - 1):
        raise CannotLink(f"something is further away than {bits} bits can tell")
    return number & ((1 << bits) - 1)


def _distance(word: int, place: int, target: int) -> int:
    """In bytes; the word is nothing else."""
    return _signed(target - place, 32)


def _pages(word: int, place: int, target: int) -> int:
    """ADRP: how many pages of 4 KiB it is, the lowest two bits from bit 29 on, the others from bit 5 on."""
    pages = _signed((target >> 12) - (place >> 12), 21)
    return word & ~(3 << 29 | 0x7FFFF << 5) | (pages & 3) << 29 | pages >> 2 << 5


def _in_page(size: int, word: int, place: int, target: int) -> int:
    """ADD, LDR, STR: the place within the page, in units of ``size`` bytes, from bit 10 on."""
    within = target & 0xFFF
    if within % size:
        raise CannotLink(f"{size} bytes are read from a place that is no multiple of that")
    return word & ~(0xFFF << 10) | within // size << 10


def _instructions(word: int, place: int, target: int) -> int:
    """B, BL: how many instructions it is, in the lowest 26 bits."""
    if (target - place) % 4:
        raise CannotLink("no instruction begins where another one jumps to")
    return word & ~0x3FFFFFF | _signed((target - place) >> 2, 26)


_PC32, _PLT32 = 2, 4
"""`R_X86_64_PC32` and so on."""
_PREL32, _ADR_PREL_PG_HI21, _JUMP26, _CALL26 = 261, 275, 282, 283
_IN_PAGE: Final = {277: 1, 278: 1, 284: 2, 285: 4, 286: 8, 299: 16}
"""`R_AARCH64_PREL32` and so on; `R_AARCH64_ADD_ABS_LO12_NC` and `LDST8` to `LDST128`, and what they read."""

MACHINES: Final[Mapping[str, ElfMachine]] = {
    "x86_64": ElfMachine(
        62, {_PC32: _distance, _PLT32: _distance}, frozenset({_PLT32}), b"\xff\x25\2\0\0\0\0\0", sees_writes=True
    ),
    "aarch64": ElfMachine(
        183,
        {
            _PREL32: _distance,
            _ADR_PREL_PG_HI21: _pages,
            _JUMP26: _instructions,
            _CALL26: _instructions,
            **{kind: partial(_in_page, size) for kind, size in _IN_PAGE.items()},
        },
        frozenset({_JUMP26, _CALL26}),
        b"\x50\x00\x00\x58\x00\x02\x1f\xd6",  # ldr x16, .+8; br x16
        sees_writes=False,
    ),
}
"""By the names of LLVM."""
