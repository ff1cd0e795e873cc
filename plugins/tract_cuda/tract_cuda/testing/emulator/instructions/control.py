"""Jumps, ends, and barriers of a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.writer import Operation, Row, Writer

_MEET: Final = """define internal void @meet(i64 %first, i64 %mask) {
  call void @tract.warp_meet(i64 %first, i64 %mask)
  ret void
}
"""


def _warp(w: Writer, op: Operation) -> None:
    """The lanes of a mask wait for each other, and see what they wrote."""
    w.functions.setdefault("meet", _MEET)
    w.declare("tract.warp_meet", "void", ["i64", "i64"])
    w.wait_together("meet", w.sized(w.bits(op.operands[0], "b32"), 32, 64))


def _barrier(w: Writer, op: Operation) -> None:
    """The threads of a block, or so many of them, wait for each other; or say only that they are there."""
    if op.has("warp"):
        _warp(w, op)
        return
    if op.has("red"):
        raise op.unknown("barriers combine no values")
    operands = [w.sized(w.bits(one, "u32"), 32, 64) for one in op.operands]
    number, count = operands[0] if operands else "0", operands[1] if len(operands) > 1 else "0"
    waits = not op.has("arrive")
    w.set_field("flags", 0 if op.statement.opcode == "barrier" and not op.has("aligned") else 1)
    w.machine_do("barrier_arrive", number, count, str(int(waits)), str(w.line))
    if waits:
        w.suspend()


TABLE: Final[Mapping[str, Row]] = {
    "bar": Row(_barrier, "sync arrive warp cta red"),
    "barrier": Row(_barrier, "sync arrive aligned cta"),
}
