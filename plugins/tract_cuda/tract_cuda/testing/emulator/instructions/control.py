"""Jumps, ends, and barriers of a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.writer import Operation, Row, Writer


def _barrier(w: Writer, op: Operation) -> None:
    operands = [w.sized(w.bits(one, "u32"), 32, 64) for one in op.operands]
    number, count = operands[0] if operands else "0", operands[1] if len(operands) > 1 else "0"
    waits = not op.has("arrive")
    w.set_field("flags", 0 if op.statement.opcode == "barrier" and not op.has("aligned") else 1)
    w.machine_do("barrier_arrive", number, count, str(int(waits)), str(w.line))
    if waits:
        w.suspend()


TABLE: Final[Mapping[str, Row]] = {
    "bar": Row(_barrier, "sync arrive cta"),
    "barrier": Row(_barrier, "sync arrive aligned cta"),
}
