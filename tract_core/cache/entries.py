"""The files of a cache: their names, and how large they are."""

from __future__ import annotations

from typing import Final

ENDING: Final = ".o"
"""Of files with the code of a kernel."""

PLAN: Final = ".plan"
"""Of files with a prepared model, or what is known of one."""

LARGEST: Final = 64 << 20
"""Bytes of a kernel at most: a longer file is none."""

BLOCK: Final = 4096
"""Bytes that a file takes on a disk at least, and by which it grows."""


def on_disk(size: int) -> int:
    """What a file of so many bytes takes, about."""
    return max(1, -(-size // BLOCK)) * BLOCK
