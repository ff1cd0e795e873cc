"""Copies into shared memory that go on while threads do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.machine.copies import ALL
from tract_cuda.testing.emulator.types import BITS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, number

_KNOWN: Final = (
    "async ca cg shared global shared::cta commit_group wait_group wait_all L2::cache_hint L2::64B L2::128B L2::256B"
)


def _cp(w: Writer, op: Operation) -> None:
    if op.has("commit_group"):
        w.machine_do("copy_commit")
    elif op.has("wait_group"):
        left = number(op.operands[0], "b32")
        if left is None:
            raise op.unknown("how many groups may be left is no number")
        w.machine_do("copy_wait", str(left), str(w.line))
    elif op.has("wait_all"):
        w.machine_do("copy_wait", str(ALL), str(w.line))
    else:
        _start(w, op)


def _start(w: Writer, op: Operation) -> None:
    """The number of bytes, of which so many are copied; or none where a predicate says so."""
    if op.has("L2::cache_hint"):
        raise op.unknown("hints are not known")
    to, where, size = op.operands[:3]
    count = number(size, "b32")
    if count is None:
        raise op.unknown("the number of bytes is none")
    have = str(count)
    for operand in op.operands[3:4]:
        have = _have(w, operand, count)
    target, source = w.address(to), w.address(where)
    w.machine_do("copy_start", target, source, str(count), have, str(w.line))


def _have(w: Writer, operand: str, count: int) -> str:
    if w.kind_of(operand) == "pred":
        return w.ir(f"select i1 {w.bits(operand, 'pred')}, i64 0, i64 {count}")
    return w.sized(w.bits(operand, "u32"), BITS["u32"], 64)


TABLE: Final[Mapping[str, Row]] = {"cp": Row(_cp, _KNOWN)}
