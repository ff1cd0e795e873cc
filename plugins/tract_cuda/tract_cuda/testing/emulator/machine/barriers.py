"""Barriers of a block: who arrived, who waits, and what they know of each other afterwards."""

from __future__ import annotations

from typing import Any

from tract_llvm.language.values import Value

from tract_cuda.testing.emulator.machine.layout import AT_BARRIER, BARRIER, BARRIERS, BLOCK, READY, WORD
from tract_cuda.testing.emulator.machine.native import Native, Record, thread_of


def write(module: Any) -> None:
    """The functions, into a module of llvmlite."""
    _arrive(module)
    _release(module)
    _together(module)
    _all(module)


def _arrive(module: Any) -> None:
    """arrive(thread, barrier, threads or 0 for all, whether it waits, line)"""
    k = Native(module, "barrier_arrive", 5)
    where, number, given, waits, line = k.arguments()
    thread = thread_of(k, where)
    block = k.record(BLOCK, thread["block"])
    barrier = k.record(BARRIER, block["barriers"] + (number & (BARRIERS - 1)) * BARRIER.bytes)
    count = k.select(given.equals(0), block["thread_count"], given)
    with k.when(barrier["arrived"].differs(0) & barrier["expected"].differs(count)):
        k.complain(thread, "barrier_counts", line, first=barrier["expected"], second=count)
    with k.when((number >= BARRIERS) | (number < 0) | (count & 31).differs(0) & count.differs(block["thread_count"])):
        k.complain(thread, "barrier_counts", line, first=number, second=count)
    barrier["arrived"], barrier["expected"] = barrier["arrived"] + 1, count
    with k.when(given.differs(0)):  # others may only arrive, or not come at all
        _join(k, thread, block, barrier)
    with k.when(waits.differs(0)):
        thread["wait"], thread["number"], thread["line"] = k.number(AT_BARRIER), number, line
    k.finish()


def _join(k: Native, thread: Record, block: Record, barrier: Record) -> None:
    """What the thread's warp knows is known to all who pass the barrier."""
    own = block["warps"] + thread["warp"] * 33 * WORD
    clock = k.memory(own)[0] + 1
    k.memory(own)[0], barrier["known"] = clock, k.number(1)
    join = barrier.place("extra")
    with k.loop("warp", 32) as warp:
        known = k.memory(own + WORD)[warp]
        known = k.select(warp.equals(thread["warp"]), clock, known)
        before = k.memory(join)[warp]
        k.memory(join)[warp] = k.select(before < known, known, before)


def _release(module: Any) -> None:
    """release(block, number): all who wait at the barrier go on."""
    k = Native(module, "barrier_release", 2)
    where, number = k.arguments()
    block = k.record(BLOCK, where)
    barrier = k.record(BARRIER, block["barriers"] + number * BARRIER.bytes)
    waiting = k.variable(k.number(0))
    with k.loop("thread", block["thread_count"]) as index:
        thread = thread_of(k, block["threads"] + index * block["thread_bytes"])
        with k.when(thread["wait"].equals(AT_BARRIER) & thread["number"].equals(number)):
            waiting.value = waiting.value + 1
            thread["wait"] = k.number(READY)
            _same_line(k, block, thread)
            with k.when(barrier["known"].differs(0)):
                _learn(k, block, thread, barrier.place("extra"))
            thread["number"] = k.number(-1)
    with k.when(waiting.value.equals(block["thread_count"])):
        block["epoch"] = block["epoch"] + 1
    barrier["arrived"], barrier["known"] = k.number(0), k.number(0)
    with k.loop("warp", 32) as warp:
        k.memory(barrier.place("extra"))[warp] = k.number(0)
    k.finish()


def _same_line(k: Native, block: Record, thread: Record) -> None:
    """All lanes of a warp are at the same barrier in the code, where that is demanded."""
    first = thread_of(k, block["threads"] + (thread["index"] & ~31) * block["thread_bytes"])
    apart = first["line"].differs(thread["line"]) & thread["flags"].differs(0)
    with k.when(apart):
        k.complain(thread, "barrier_lines", thread["line"], first=first["line"])


def _learn(k: Native, block: Record, thread: Record, join: Value) -> None:
    own = block["warps"] + thread["warp"] * 33 * WORD
    with k.loop("warp", 32) as warp:
        before, new = k.memory(own + WORD)[warp], k.memory(join)[warp]
        k.memory(own + WORD)[warp] = k.select(before < new, new, before)
    lanes = block["lanes"] + thread["index"] * 32 * WORD
    with k.loop("lane", 32) as lane:
        k.memory(lanes)[lane] = k.memory(own)[0]


def _together(module: Any) -> None:
    """meet(thread of lane 0, lanes): what these lanes wrote is seen by all of them."""
    k = Native(module, "warp_meet", 2)
    where, mask = k.arguments()
    first = thread_of(k, where)
    block = k.record(BLOCK, first["block"])
    own = block["warps"] + first["warp"] * 33 * WORD
    clock = k.memory(own)[0] + 1
    k.memory(own)[0] = clock
    lanes = block["lanes"] + first["index"] * 32 * WORD
    with k.loop("pair", 32 * 32) as pair, k.when((mask >> pair // 32 & mask >> pair % 32 & 1).differs(0)):
        k.memory(lanes)[pair] = clock
    k.finish()


def _all(module: Any) -> None:
    """passed(block): release every barrier at which all are; how many were released."""
    k = Native(module, "barriers_passed", 1, returns=True)
    block = k.record(BLOCK, k.argument(0))
    found = k.variable(k.number(0))
    with k.loop("barrier", BARRIERS) as number:
        barrier = k.record(BARRIER, block["barriers"] + number * BARRIER.bytes)
        with k.when(barrier["arrived"].differs(0) & (barrier["arrived"] >= barrier["expected"])):
            k.do("barrier_release", k.argument(0), number)
            found.value = found.value + 1
    k.finish(found.value)
