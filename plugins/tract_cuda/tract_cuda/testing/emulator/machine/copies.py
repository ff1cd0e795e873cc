"""Copies into shared memory that arrive later: as late as they may, and nobody touches the memory in between."""

from __future__ import annotations

from typing import Any, Final

from tract_llvm.language.values import Value

from tract_cuda.testing.emulator.machine.access import READ, WRITE
from tract_cuda.testing.emulator.machine.layout import (
    BLOCK,
    COPY,
    LAUNCH,
    MOST_COPIES,
    SHADOW,
    SHADOW_BYTES,
    SHARED_BASE,
)
from tract_cuda.testing.emulator.machine.native import Native, Record, thread_of

_IN_FLIGHT: Final = -(1 << 63)
"""In the record of who wrote a byte: it is being written."""

ALL: Final = -1
"""How many groups a thread leaves in flight that waits for all copies, those of no group too."""


def write(module: Any) -> None:
    """The functions, into a module of llvmlite."""
    _start(module)
    _commit(module)
    _wait(module)
    _start_bulk(module)
    _deliver(module)


def _start(module: Any) -> None:
    """start(thread, target, source, bytes, have, line): a copy into shared memory begins.

    Nothing is copied of what may not be read.
    """
    k = Native(module, "copy_start", 6)
    where, target, source, count, given, line = k.arguments()
    thread = thread_of(k, where)
    have = k.variable(given)
    with k.when(given > count):
        k.complain(thread, "copied", line, address=source, bytes=count, first=given)
        have.value = k.number(0)
    with k.when(have.value > 0):
        with k.when((source & (count - 1)).differs(0)):
            k.complain(thread, "misaligned", line, address=source, bytes=count, first=k.number(READ))
        for place in (source, source + given - 1):
            found = k.call("access_global", where, place, k.number(1), k.number(READ), line)
            have.value = k.select(found.equals(place), have.value, k.number(0))
    with k.when(thread["copy_count"] >= MOST_COPIES):
        k.complain(thread, "copies", line)
        thread["copy_count"] = k.number(0)
    k.call("access_shared", where, target, count, k.number(WRITE), line)
    _mark(k, thread, target, count)
    number = thread["copy_count"]
    copy = k.record(COPY, thread["copies"] + number * COPY.bytes)
    copy["target"], copy["source"], copy["bytes"], copy["have"] = target, source, count, have.value
    copy["group"], copy["barrier"] = thread["groups"], k.number(0)
    thread["copy_count"] = number + 1
    k.finish()


def _mark(k: Native, thread: Record, target: Value, count: Value, *, arrived: bool = False) -> None:
    """The bytes are in flight, or arrived."""
    block = k.record(BLOCK, thread["block"])
    begin = (target & 0xFFFFFFFF) - SHARED_BASE
    size = k.record(LAUNCH, thread["launch"])["shared_bytes"]
    mark = k.call("access_mark", thread.address)
    own = mark if arrived else mark | _IN_FLIGHT
    shadow = block["shadow"] + begin * SHADOW_BYTES
    with k.when((begin >= 0) & (begin + count <= size)), k.loop("byte", count) as place:
        k.record(SHADOW, shadow + place * SHADOW_BYTES)["writer"] = own


def _commit(module: Any) -> None:
    """commit(thread): the copies so far are a group."""
    k = Native(module, "copy_commit", 1)
    thread = thread_of(k, k.argument(0))
    thread["groups"] = thread["groups"] + 1
    k.finish()


def _wait(module: Any) -> None:
    """wait(thread, groups that may be in flight, line): all older copies arrive now."""
    k = Native(module, "copy_wait", 3)
    where, left, line = k.arguments()
    thread = thread_of(k, where)
    kept = k.variable(k.number(0))
    with k.loop("copy", thread["copy_count"]) as number:
        copy = k.record(COPY, thread["copies"] + number * COPY.bytes)
        old = (left < 0) | (copy["group"] + left < thread["groups"])
        with k.either(old & copy["barrier"].equals(0)) as (then, otherwise):
            with then:
                _arrive(k, thread, copy, line)
            with otherwise:
                other = k.record(COPY, thread["copies"] + kept.value * COPY.bytes)
                for name in COPY.names:
                    other[name] = copy[name]
                kept.value = kept.value + 1
    thread["copy_count"] = kept.value
    k.finish()


def _arrive(k: Native, thread: Record, copy: Record, line: Value) -> None:
    count, have, source = copy["bytes"], copy["have"], copy["source"]
    _mark(k, thread, copy["target"], count, arrived=True)
    target = k.call("access_shared", thread.address, copy["target"], count, k.number(WRITE), line)
    k.copy(target, source, have)
    k.fill(target + have, 0, count - have)


def _start_bulk(module: Any) -> None:
    """start(thread, target, source, bytes, barrier, line): a copy of many bytes, at whose end a barrier misses less."""
    k = Native(module, "bulk_start", 6)
    where, target, source, count, barrier, line = k.arguments()
    thread = thread_of(k, where)
    with k.when(((target | source | count) & 15).differs(0)):
        k.complain(thread, "misaligned", line, address=source, bytes=k.number(16), first=k.number(READ))
    there = _reached(k)
    _mark(k, thread, target, count)
    number = thread["copy_count"]
    with k.when(number >= MOST_COPIES):
        k.complain(thread, "copies", line)
    copy = k.record(COPY, thread["copies"] + (number & (MOST_COPIES - 1)) * COPY.bytes)
    copy["target"], copy["source"], copy["bytes"], copy["have"] = target, source, there, there
    copy["group"], copy["barrier"] = thread["groups"], barrier
    thread["copy_count"] = number + 1
    k.finish()


def _reached(k: Native) -> Value:
    """How many bytes a copy of many has: all, or none where one of them may not be touched."""
    where, target, source, count, _, line = k.arguments()
    held = thread_of(k, where)["shared"] + ((target & 0xFFFFFFFF) - SHARED_BASE)
    place, good = k.variable(k.number(0)), k.variable(k.number(1))
    with k.loop_while("piece", lambda: (good.value > 0) & (place.value < count)):
        piece = place.value
        read = k.call("access_global", where, source + piece, k.number(16), k.number(READ), line)
        written = k.call("access_shared", where, target + piece, k.number(16), k.number(WRITE), line)
        both = read.equals(source + piece) & written.equals(held + piece)
        good.value, place.value = k.select(both, good.value, k.number(0)), piece + 16
    return good.value * count


def _deliver(module: Any) -> None:
    """deliver(block): one copy for which a barrier waits arrives; whether there was one."""
    k = Native(module, "bulk_deliver", 1, returns=True)
    block = k.record(BLOCK, k.argument(0))
    done = k.variable(k.number(0))
    with k.loop("thread", block["thread_count"]) as index:
        thread = thread_of(k, block["threads"] + index * block["thread_bytes"])
        with k.loop("copy", thread["copy_count"]) as number:
            copy = k.record(COPY, thread["copies"] + number * COPY.bytes)
            with k.when(done.value.equals(0) & copy["barrier"].differs(0)):
                _arrive_bulk(k, thread, copy)
                done.value = k.number(1)
    k.finish(done.value)


def _arrive_bulk(k: Native, thread: Record, copy: Record) -> None:
    """The last copy takes its place."""
    line, target, count = thread["line"], copy["target"], copy["bytes"]
    barrier, source = copy["barrier"], copy["source"]
    _mark(k, thread, target, count, arrived=True)
    host = thread["shared"] + ((target & 0xFFFFFFFF) - SHARED_BASE)
    k.copy(host, source, count)
    thread["copy_count"] = thread["copy_count"] - 1
    last = k.record(COPY, thread["copies"] + thread["copy_count"] * COPY.bytes)
    for name in COPY.names:
        copy[name] = last[name]
    k.call("mbarrier_arrive", thread.address, barrier, k.number(0), k.number(0) - count, line)
