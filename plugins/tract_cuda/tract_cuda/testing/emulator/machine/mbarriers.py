"""Barriers in shared memory, at which threads arrive and copies complete.

One is 64 bits: its phase, how many arrivals a phase takes, how many are missing, and bytes that are missing besides.
"""

from __future__ import annotations

from typing import Any, Final

from tract_llvm.language.values import Value

from tract_cuda.testing.emulator.machine.access import ATOMIC, READ, WRITE
from tract_cuda.testing.emulator.machine.layout import BLOCK, SHARED_BASE, WORD
from tract_cuda.testing.emulator.machine.native import Native, Record, thread_of

_EXPECTED: Final = 1
_PENDING: Final = 16
_BYTES: Final = 32
_COUNT: Final = (1 << 15) - 1
_ALL: Final = READ | WRITE | ATOMIC
_WARPS: Final = 32
JOIN_BYTES: Final = _WARPS + 8
"""For each byte of shared memory, so many for what the warps know that arrived at a barrier there, and who made it."""


def write(module: Any) -> None:
    """The functions, into a module of llvmlite."""
    _init(module)
    _arrive(module)
    _test(module)


def _held(k: Native, where: Value, address: Value, kind: int, line: Value) -> Value:
    """The address on the host of a barrier."""
    return k.call("access_shared", where, address, k.number(WORD), k.number(kind), line)


def _known(k: Native, thread: Record, address: Value) -> Value:
    """Where it is kept what is known by those who arrived: a clock for each warp."""
    block = k.record(BLOCK, thread["block"])
    return block["joins"] + ((address & 0xFFFFFFFF) - SHARED_BASE) * JOIN_BYTES


def _init(module: Any) -> None:
    """init(thread, address, arrivals, line)"""
    k = Native(module, "mbarrier_init", 4)
    where, address, count, line = k.arguments()
    held = _held(k, where, address, WRITE, line)
    k.memory(held)[0] = (count & _COUNT) << _EXPECTED | (count & _COUNT) << _PENDING
    known = _known(k, thread_of(k, where), address)
    with k.loop("warp", _WARPS) as warp:
        k.memory(known)[warp] = k.number(0)
    k.memory(known)[_WARPS] = k.call("access_mark", where)
    k.finish()


def _made(k: Native, thread: Record, known: Value, line: Value) -> None:
    """Whoever uses a barrier knows that it was made."""
    mark = k.memory(known)[_WARPS]
    with k.when(mark.differs(0) & k.call("access_ordered", thread.address, mark).equals(0)):
        k.complain(thread, "made", line, first=mark)


def _arrive(module: Any) -> None:
    """arrive(thread, address, arrivals, more bytes that are missing, line): the phase before."""
    k = Native(module, "mbarrier_arrive", 5, returns=True)
    where, address, count, more, line = k.arguments()
    thread = thread_of(k, where)
    held = _held(k, where, address, _ALL, line)
    word = k.memory(held)[0]
    pending = (word >> _PENDING & 0xFFFF) - count
    missing = (word >> _BYTES) + more
    phase, expected = word & 1, word >> _EXPECTED & _COUNT
    with k.when(pending < 0):
        k.complain(thread, "arrivals", line, address=(address & 0xFFFFFFFF) - SHARED_BASE)
    _made(k, thread, _known(k, thread, address), line)
    _join(k, thread, _known(k, thread, address))
    over = pending.equals(0) & missing.equals(0)
    following = k.select(over, phase ^ 1, phase)
    pending = k.select(over, expected, pending)
    k.memory(held)[0] = following | expected << _EXPECTED | pending << _PENDING | missing << _BYTES
    k.finish(phase)


def _join(k: Native, thread: Record, known: Value) -> None:
    """What the thread's warp knows is known to all who wait for the barrier."""
    block = k.record(BLOCK, thread["block"])
    own = block["warps"] + thread["warp"] * 33 * WORD
    clock = k.memory(own)[0] + 1
    k.memory(own)[0] = clock
    with k.loop("warp", _WARPS) as warp:
        seen = k.select(warp.equals(thread["warp"]), clock, k.memory(own + WORD)[warp])
        before = k.memory(known)[warp]
        k.memory(known)[warp] = k.select(before < seen, seen, before)


def _test(module: Any) -> None:
    """test(thread, address, phase, line): 1 where that phase is over, and 0."""
    k = Native(module, "mbarrier_test", 4, returns=True)
    where, address, phase, line = k.arguments()
    thread = thread_of(k, where)
    word = k.memory(_held(k, where, address, _ALL, line))[0]
    _made(k, thread, _known(k, thread, address), line)
    over = (word & 1).differs(phase & 1)
    with k.when(over):
        _learn(k, thread, _known(k, thread, address))
    k.finish(k.select(over, k.number(1), k.number(0)))


def _learn(k: Native, thread: Record, known: Value) -> None:
    block = k.record(BLOCK, thread["block"])
    own = block["warps"] + (thread["warp"] * 33 + 1) * WORD
    with k.loop("warp", _WARPS) as warp:
        before, new = k.memory(own)[warp], k.memory(known)[warp]
        k.memory(own)[warp] = k.select(before < new, new, before)
    lanes = block["lanes"] + thread["index"] * 32 * WORD
    with k.loop("lane", 32) as lane:
        before, new = k.memory(lanes)[lane], k.memory(known)[thread["warp"]]
        k.memory(lanes)[lane] = k.select(before < new, new, before)
