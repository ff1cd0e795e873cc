"""What the lanes of a warp do together: each waits until all of the mask are there, then one function does it for all.

Such a function is called with the first thread of the warp and with the lanes that take part. Operands and results are
in the slots of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.instructions.collective import Together, together
from tract_cuda.testing.emulator.types import BITS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer

_FROM: Final = {
    "bfly": "  %j = xor i32 %lane, %b",
    "idx": "  %j0 = and i32 %b, %free\n  %j = or i32 %low, %j0",
    "up": "  %j = sub i32 %lane, %b",
    "down": "  %j = add i32 %lane, %b",
}
"""The lane %j whose value is wanted."""


def _mask(w: Writer, operand: str | None) -> str:
    """The lanes that take part, as i64; all where the instruction does not say."""
    return "4294967295" if operand is None else w.sized(w.bits(operand, "b32"), 32, 64)


def _lane(w: Writer) -> str:
    """The thread's own, as i32."""
    return w.ir(f"trunc i64 {w.field('lane')} to i32")


def _targets(op: Operation) -> tuple[str, str]:
    """The register of the result, and the predicate beside it, empty where there is none."""
    target, _, whether = op.operands[0].partition("|")
    return target.strip(), whether.strip()


def _shfl(w: Writer, op: Operation) -> None:
    """The value of another lane; a lane that is in no segment of the instruction keeps its own."""
    sync = op.has("sync")
    how = op.one_of([*_FROM])
    target, valid = _targets(op)
    mask = _mask(w, op.operands[4] if sync else None)
    for number, operand in enumerate(op.operands[1:4]):
        w.set_slot(number, w.bits(operand, "b32"))
    test = "icmp sge i32 %j, %most" if how == "up" else "icmp sle i32 %j, %most"
    name = together(w, f"shfl_{how}", Together(_SHFL.format(lane=_FROM[how], test=test)))
    w.wait_together(name, mask)
    w.put(target, w.slot(4), "b32")
    if valid:
        w.put(valid, w.ir(f"trunc i32 {w.slot(5)} to i1"), "pred")


_SHFL: Final = """  %b0 = call i32 @slot(i64 %first, i64 %i, i64 1)
  %b = and i32 %b0, 31
  %c = call i32 @slot(i64 %first, i64 %i, i64 2)
  %clamp = and i32 %c, 31
  %m0 = lshr i32 %c, 8
  %segment = and i32 %m0, 31
  %lane = trunc i64 %i to i32
  %free = xor i32 %segment, 31
  %low = and i32 %lane, %segment
  %c1 = and i32 %clamp, %free
  %most = or i32 %low, %c1
{lane}
  %inside = {test}
  %own = select i1 %inside, i32 %j, i32 %lane
  %from = zext i32 %own to i64
  %there0 = lshr i64 %mask, %from
  %there = and i64 %there0, 1
  %is = icmp ne i64 %there, 0
  %source = select i1 %is, i64 %from, i64 %i
  %value0 = call i32 @slot(i64 %first, i64 %source, i64 0)
  %value = select i1 %is, i32 %value0, i32 -1431655766
  call void @set_slot(i64 %first, i64 %i, i64 4, i32 %value)
  %flag = zext i1 %inside to i32
  call void @set_slot(i64 %first, i64 %i, i64 5, i32 %flag)"""


_COUNT: Final = """  %v = call i32 @slot(i64 %first, i64 %i, i64 0)
  %v1 = and i32 %v, 1
  %i32 = trunc i64 %i to i32
  %moved = shl i32 %v1, %i32
  %before = load i32, ptr %sum
  %after = or i32 %before, %moved
  store i32 %after, ptr %sum"""
_BALLOT: Final = """  %all = load i32, ptr %sum
  call void @set_slot(i64 %first, i64 %i, i64 4, i32 %all)
  %m = trunc i64 %mask to i32
  call void @set_slot(i64 %first, i64 %i, i64 5, i32 %m)"""


def _vote(w: Writer, op: Operation) -> None:
    """Which lanes say yes, whether all or any do, or all the same."""
    sync = op.has("sync")
    mask = _mask(w, op.operands[2] if sync else None)
    w.set_slot(0, w.sized(w.bits(op.operands[1], "pred"), 1, 32))
    name = together(w, "ballot", Together(_BALLOT, _COUNT))
    w.wait_together(name, mask)
    yes, there = w.slot(4), w.slot(5)
    if op.has("ballot"):
        w.put(op.operands[0], yes, "b32")
        return
    w.put(op.operands[0], _verdict(w, op, yes, there), "pred")


def _verdict(w: Writer, op: Operation, yes: str, there: str) -> str:
    """Whether all lanes that are there say yes, or any does, or all say the same."""
    every = w.ir(f"icmp eq i32 {yes}, {there}")
    some = w.ir(f"icmp ne i32 {yes}, 0")
    none = w.ir(f"icmp eq i32 {yes}, 0")
    return every if op.has("all") else some if op.has("any") else w.two("or", 1, every, none)


def _activemask(w: Writer, op: Operation) -> None:
    """The lane itself at least: which others are in step, nobody promises."""
    w.put(op.operands[0], w.two("shl", 32, "1", _lane(w)), "b32")


_REDUX: Final = {
    "add": "add i32 %before, %v",
    "and": "and i32 %before, %v",
    "or": "or i32 %before, %v",
    "xor": "xor i32 %before, %v",
    "min": "call i32 @llvm.{sign}min.i32(i32 %before, i32 %v)",
    "max": "call i32 @llvm.{sign}max.i32(i32 %before, i32 %v)",
}

_STARTS: Final = {"sand": -1, "uand": -1, "smin": (1 << 31) - 1, "smax": -(1 << 31), "umin": -1}
"""What values are combined with, where that is not 0."""

_COMBINE: Final = """  %v = call i32 @slot(i64 %first, i64 %i, i64 0)
  %before = load i32, ptr %sum
  %after = {after}
  store i32 %after, ptr %sum"""


def _redux(w: Writer, op: Operation) -> None:
    """The sum, or another combination, of all lanes' values."""
    how, kind = op.one_of([*_REDUX]), op.kind
    if BITS[kind] != 32 or kind == "f32":
        raise op.unknown("it combines integers of 32 bits")
    sign = "s" if kind[0] == "s" else "u"
    gathered = _COMBINE.format(after=_REDUX[how].format(sign=sign))
    w.declare(f"llvm.{sign}min.i32", "i32", ["i32", "i32"])
    w.declare(f"llvm.{sign}max.i32", "i32", ["i32", "i32"])
    w.set_slot(0, w.bits(op.operands[1], kind))
    name = together(w, f"redux_{how}_{sign}", Together(_BALLOT, gathered, _STARTS.get(sign + how, 0)))
    w.wait_together(name, _mask(w, op.operands[2]))
    w.put(op.operands[0], w.slot(4), kind)


_MATCH: Final = """  %low = call i32 @slot(i64 %first, i64 %i, i64 0)
  %high = call i32 @slot(i64 %first, i64 %i, i64 1)
  store i32 0, ptr %sum
  br label %next
next:
  %k = phi i64 [0, %lanes.does], [%k1, %same]
  %bit0 = lshr i64 %mask, %k
  %bit = and i64 %bit0, 1
  %l = call i32 @slot(i64 %first, i64 %k, i64 0)
  %h = call i32 @slot(i64 %first, i64 %k, i64 1)
  %el = icmp eq i32 %l, %low
  %eh = icmp eq i32 %h, %high
  %e0 = and i1 %el, %eh
  %is = icmp ne i64 %bit, 0
  %e = and i1 %e0, %is
  br label %same
same:
  %ez = zext i1 %e to i32
  %k32 = trunc i64 %k to i32
  %moved = shl i32 %ez, %k32
  %before = load i32, ptr %sum
  %after = or i32 %before, %moved
  store i32 %after, ptr %sum
  %k1 = add i64 %k, 1
  %last = icmp ult i64 %k1, 32
  br i1 %last, label %next, label %through
through:
  %found = load i32, ptr %sum
  call void @set_slot(i64 %first, i64 %i, i64 4, i32 %found)
  %m = trunc i64 %mask to i32
  call void @set_slot(i64 %first, i64 %i, i64 5, i32 %m)"""


def _match(w: Writer, op: Operation) -> None:
    """The lanes that have the same value; or all, where all have it."""
    kind = op.kind
    value = w.sized(w.bits(op.operands[1], kind), BITS[kind], 64)
    w.set_slot(0, w.sized(value, 64, 32))
    w.set_slot(1, w.sized(w.two("lshr", 64, value, "32"), 64, 32))
    name = together(w, "match", Together(_MATCH))
    w.wait_together(name, _mask(w, op.operands[2]))
    same, there = w.slot(4), w.slot(5)
    target, whether = _targets(op)
    if op.has("any"):
        w.put(target, same, "b32")
        return
    every = w.ir(f"icmp eq i32 {same}, {there}")
    w.put(target, w.ir(f"select i1 {every}, i32 {same}, i32 0"), "b32")
    if whether:
        w.put(whether, every, "pred")


def _elect(w: Writer, op: Operation) -> None:
    """One lane of those of the mask, the lowest, is told so."""
    target, whether = _targets(op)
    name = together(w, "elect", Together(_BALLOT))
    w.wait_together(name, _mask(w, op.operands[1]))
    lowest = w.intrinsic("llvm.cttz.i32", "i32", f"i32 {w.slot(5)}", "i1 false")
    lane = _lane(w)
    w.put(target, lowest, "b32")
    w.put(whether, w.ir(f"icmp eq i32 {lane}, {lowest}"), "pred")


TABLE: Final[Mapping[str, Row]] = {
    "shfl": Row(_shfl, "sync bfly idx up down"),
    "vote": Row(_vote, "sync all any uni ballot"),
    "activemask": Row(_activemask),
    "redux": Row(_redux, "sync add min max and or xor"),
    "match": Row(_match, "sync any all"),
    "elect": Row(_elect, "sync"),
}
