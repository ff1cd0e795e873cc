"""Copies into shared memory that go on while threads do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.machine.copies import ALL
from tract_cuda.testing.emulator.types import BITS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, number

_KNOWN: Final = (
    "async bulk mbarrier::complete_tx::bytes tensor reduce prefetch bulk_group read ca cg shared global commit_group "
    "wait_group wait_all L2::cache_hint L2::64B L2::128B L2::256B"
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
    elif op.has("bulk"):
        _bulk(w, op)
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


def _bulk(w: Writer, op: Operation) -> None:
    """Many bytes into shared memory, at whose end a barrier misses less."""
    if op.has("tensor", "reduce", "prefetch", "commit_group", "wait_group") or not op.has(
        "mbarrier::complete_tx::bytes"
    ):
        raise op.unknown("only what barriers wait for is copied so")
    target, source, count, barrier = op.operands[:4]
    places = [w.address(target), w.address(source), w.sized(w.bits(count, "u32"), 32, 64), w.address(barrier)]
    w.machine_do("bulk_start", *places, str(w.line))


def _mbarrier(w: Writer, op: Operation) -> None:
    """Barriers in shared memory: what is done with one is the first modifier."""
    line = str(w.line)
    if op.has("init"):
        w.machine_do("mbarrier_init", w.address(op.operands[0]), _wide(w, op.operands[1]), line)
    elif op.has("test_wait", "try_wait"):
        w.turn()
        phase = (
            w.bits(op.operands[2], "b32")
            if op.has("parity")
            else w.ir(f"trunc i64 {w.bits(op.operands[2], 'b64')} to i32")
        )
        found = w.machine("mbarrier_test", w.address(op.operands[1]), w.sized(phase, 32, 64), line)
        w.put(op.operands[0], w.ir(f"trunc i64 {found} to i1"), "pred")
    elif op.has("arrive", "expect_tx"):
        _arrive(w, op)
    elif not op.has("inval"):
        raise op.unknown("barriers do no such thing")


def _arrive(w: Writer, op: Operation) -> None:
    """Once, or as often as an operand says; or more bytes are missing first."""
    arrives = op.has("arrive")
    state, operands = (
        (op.operands[0], op.operands[1:]) if arrives and not op.operands[0].startswith("[") else ("_", op.operands)
    )
    where, *numbers = operands
    more, count = "0", "1" if arrives else "0"
    for operand in numbers:
        if op.has("expect_tx"):
            more = _wide(w, operand)
        else:
            count = _wide(w, operand)
    w.put(state, w.machine("mbarrier_arrive", w.address(where), count, more, str(w.line)), "b64")


def _wide(w: Writer, operand: str) -> str:
    return w.sized(w.bits(operand, "u32"), BITS["u32"], 64)


TABLE: Final[Mapping[str, Row]] = {
    "cp": Row(_cp, _KNOWN),
    "mbarrier": Row(
        _mbarrier, "init inval arrive expect_tx test_wait try_wait parity release acquire relaxed cta cluster shared"
    ),
}
