"""All instructions that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.instructions import (
    approximate,
    arithmetic,
    asynchronous,
    atomics,
    bits,
    control,
    convert,
    matrix,
    memory,
    moves,
    warp,
    wgmma,
)
from tract_cuda.testing.emulator.types import BITS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer

_FAMILIES: Final = (
    approximate, arithmetic, asynchronous, atomics, bits, control, convert, matrix, memory, moves, warp, wgmma,
)  # fmt: skip
ROWS: Final[Mapping[str, Row]] = {name: row for family in _FAMILIES for name, row in family.TABLE.items()}


def write(w: Writer, op: Operation) -> None:
    """Write an instruction. Raises UnknownPtx where it is not known, or one of its modifiers."""
    row = ROWS.get(op.statement.opcode)
    if row is None:
        raise op.unknown(f"there is no '{op.statement.opcode}'")
    known = row.words.split()
    for word in op.words:
        if word not in BITS and word not in known:
            raise op.unknown(f"'{word}' is not known here")
    row.write(w, op)
