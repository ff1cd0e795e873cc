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
    "bfly": "xor i32 %lane, %b",
    "idx": "",
    "up": "sub i32 %lane, %b",
    "down": "add i32 %lane, %b",
}


def _mask(w: Writer, op: Operation, operand: str | None) -> str:
    """The lanes that take part, as i64; all where the instruction does not say."""
    return "4294967295" if operand is None else w.sized(w.bits(operand, "b32"), 32, 64)


def _shfl(w: Writer, op: Operation) -> None:
    """The value of another lane; a lane that is in no segment of the instruction keeps its own."""
    sync = op.has("sync")
    how = op.one_of([*_FROM])
    target, _, valid = op.operands[0].partition("|")
    value, b, c = op.operands[1:4]
    mask = _mask(w, op, op.operands[4] if sync else None)
    for number, operand in enumerate((value, b, c)):
        w.set_slot(number, w.bits(operand, "b32"))
    name = together(w, f"shfl_{how}", Together(_shfl_text(how)))
    w.wait_together(name, mask)
    w.put(target.strip(), w.slot(4), "b32")
    if valid:
        w.put(valid.strip(), w.ir(f"trunc i32 {w.slot(5)} to i1"), "pred")


def _shfl_text(how: str) -> str:
    lane = {"idx": "  %j0 = and i32 %b, %free\n  %j = or i32 %low, %j0"}.get(how, f"  %j = {_FROM[how]}")
    test = "icmp sge i32 %j, %most" if how == "up" else "icmp sle i32 %j, %most"
    return f"""  %b0 = call i32 @slot(i64 %first, i64 %i, i64 1)
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
    mask = _mask(w, op, op.operands[2] if sync else None)
    w.set_slot(0, w.sized(w.bits(op.operands[1], "pred"), 1, 32))
    name = together(w, "ballot", Together(_BALLOT, _COUNT))
    w.wait_together(name, mask)
    yes, there = w.slot(4), w.slot(5)
    if op.has("ballot"):
        w.put(op.operands[0], yes, "b32")
        return
    every = w.ir(f"icmp eq i32 {yes}, {there}")
    some = w.ir(f"icmp ne i32 {yes}, 0")
    none = w.ir(f"icmp eq i32 {yes}, 0")
    found = every if op.has("all") else some if op.has("any") else w.two("or", 1, every, none)
    w.put(op.operands[0], found, "pred")


def _activemask(w: Writer, op: Operation) -> None:
    """The lane itself at least: which others are in step, nobody promises."""
    lane = w.ir(f"trunc i64 {w.field('lane')} to i32")
    w.put(op.operands[0], w.two("shl", 32, "1", lane), "b32")


_REDUX: Final = {
    "add": "add i32 %before, %v",
    "and": "and i32 %before, %v",
    "or": "or i32 %before, %v",
    "xor": "xor i32 %before, %v",
    "min": "call i32 @llvm.{sign}min.i32(i32 %before, i32 %v)",
    "max": "call i32 @llvm.{sign}max.i32(i32 %before, i32 %v)",
}


def _redux(w: Writer, op: Operation) -> None:
    """The sum, or another combination, of all lanes' values."""
    how, kind = op.one_of([*_REDUX]), op.kind
    if BITS[kind] != 32 or kind == "f32":
        raise op.unknown("it combines integers of 32 bits")
    sign = "s" if kind[0] == "s" else "u"
    starts = {"add": 0, "or": 0, "xor": 0, "and": -1}
    start = starts.get(how, {"smin": (1 << 31) - 1, "smax": -(1 << 31), "umin": -1, "umax": 0}.get(sign + how, 0))
    gathered = f"""  %v = call i32 @slot(i64 %first, i64 %i, i64 0)
  %before = load i32, ptr %sum
  %after = {_REDUX[how].format(sign=sign)}
  store i32 %after, ptr %sum"""
    w.declare(f"llvm.{sign}min.i32", "i32", ["i32", "i32"])
    w.declare(f"llvm.{sign}max.i32", "i32", ["i32", "i32"])
    w.set_slot(0, w.bits(op.operands[1], kind))
    name = together(w, f"redux_{how}_{sign}", Together(_BALLOT, gathered, start))
    w.wait_together(name, _mask(w, op, op.operands[2]))
    w.put(op.operands[0], w.slot(4), kind)


_MATCH: Final = """  %low = call i32 @slot(i64 %first, i64 %i, i64 0)
  %high = call i32 @slot(i64 %first, i64 %i, i64 1)
  store i32 0, ptr %sum
  br label %next
next:
  %k = phi i64 [0, %{block}], [%k1, %same]
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
    name = together(w, "match", Together(_MATCH.format(block="does")))
    w.wait_together(name, _mask(w, op, op.operands[2]))
    same, there = w.slot(4), w.slot(5)
    target, _, whether = op.operands[0].partition("|")
    if op.has("any"):
        w.put(target, same, "b32")
        return
    every = w.ir(f"icmp eq i32 {same}, {there}")
    w.put(target.strip(), w.ir(f"select i1 {every}, i32 {same}, i32 0"), "b32")
    if whether:
        w.put(whether.strip(), every, "pred")


def _elect(w: Writer, op: Operation) -> None:
    """One lane of those of the mask, the lowest, is told so."""
    target, _, whether = op.operands[0].partition("|")
    name = together(w, "elect", Together(_BALLOT, "", 0))
    mask = _mask(w, op, op.operands[1])
    w.wait_together(name, mask)
    there = w.slot(5)
    lowest = w.intrinsic("llvm.cttz.i32", "i32", f"i32 {there}", "i1 false")
    lane = w.ir(f"trunc i64 {w.field('lane')} to i32")
    w.put(target.strip(), lowest, "b32")
    w.put(whether.strip(), w.ir(f"icmp eq i32 {lane}, {lowest}"), "pred")


TABLE: Final[Mapping[str, Row]] = {
    "shfl": Row(_shfl, "sync bfly idx up down"),
    "vote": Row(_vote, "sync all any uni ballot"),
    "activemask": Row(_activemask),
    "redux": Row(_redux, "sync add min max and or xor"),
    "match": Row(_match, "sync any all"),
    "elect": Row(_elect, "sync"),
}
