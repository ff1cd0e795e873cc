"""Every access to memory: what it reaches must be there, aligned, written before it is read, and in no race.

What is wrong is kept in the launch, and the access goes to memory that nobody reads.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final

from tract_llvm.language.types import I64, ir_type
from tract_llvm.language.values import Value
from tract_llvm.llvm import ir

from tract_cuda.testing.emulator.machine.layout import (
    BLOCK,
    LAUNCH,
    RANGE,
    RANGE_BYTES,
    SHADOW,
    SHADOW_BYTES,
    SHARED_BASE,
    TOUCHED,
    TOUCHED_BYTES,
    WORD,
)
from tract_cuda.testing.emulator.machine.native import BYTE, Native, Record, thread_of

WRITE: Final = 1
"""Among what an access is: it writes."""
READ: Final = 2
"""It reads."""
ATOMIC: Final = 4
"""It does both in one step: of several of these, no two race."""

THREAD_BITS: Final = 10
STAMP_BITS: Final = 27
EPOCH_BITS: Final = 25
"""In a record of who accessed a byte: the thread, the clock of its warp, and the epoch of the block above them."""
ATOMICALLY: Final = 1 << 62
"""In such a record: it was atomic."""
_IN_FLIGHT: Final = 1 << 63

_SEVERAL: Final = -1
"""In place of the number of a block that read: there were several."""
_TOUCHES: Final = (("writer", "writer_block", False), ("reader", "reader_block", True), ("other", "reader_block", True))
"""What is kept of a byte of global memory, whose it is, and whether only those who write race with it."""

_TRASH: Final = 256


def write(module: Any) -> None:
    """The functions, into a module of llvmlite."""
    _mark(module)
    _ordered(module)
    _seen(module)
    _touched(module)
    _global(module)
    _shared(module)
    _local(module)
    _generic(module)


def _trash(k: Native) -> Value:
    """Memory for accesses that went wrong."""
    found = k.module.globals.get("trash")
    if found is None:
        found = ir.GlobalVariable(k.module, ir.ArrayType(ir.IntType(8), _TRASH), "trash")
        found.linkage, found.initializer = "internal", ir.Constant(found.type.pointee, None)
    return Value(k, k.builder.ptrtoint(found, ir_type(I64)), I64)


def _global(module: Any) -> None:
    """global(thread, address, bytes, kind, line): the address that may be used."""
    k = Native(module, "access_global", 5, returns=True)
    where, address, count, kind, line = k.arguments()
    thread = thread_of(k, where)
    launch = k.record(LAUNCH, thread["launch"])
    found = k.variable(launch["last_range"])
    inside = k.variable(_inside(k, found.value, address, count))
    with k.when(inside.value.equals(0)), k.loop("range", launch["range_count"]) as number:
        here = launch["ranges"] + number * RANGE_BYTES
        with k.when(_inside(k, here, address, count).differs(0)):
            found.value, inside.value = here, k.number(1)
    result = k.variable(_trash(k))
    with k.either(inside.value.differs(0)) as (then, otherwise):
        with then:
            launch["last_range"], result.value = found.value, address
            _allowed(k, found.value)
        with otherwise:
            k.complain(thread, "outside", line, address=address, bytes=count, first=kind)
    k.finish(result.value)


def _inside(k: Native, place: Value, address: Value, count: Value) -> Value:
    one = k.record(RANGE, place)
    found = (address >= one["begin"]) & (address + count <= one["end"])
    return k.select(found, k.number(1), k.number(0))


def _allowed(k: Native, found: Value) -> None:
    """The access is as its range has it."""
    where, address, count, kind, line = k.arguments()
    thread, one = thread_of(k, where), k.record(RANGE, found)
    with k.when((address & (count - 1)).differs(0)):
        k.complain(thread, "misaligned", line, address=address, bytes=count, first=kind)
    with k.when((kind & WRITE).differs(0) & one["writable"].equals(0)):
        k.complain(thread, "read_only", line, address=address, bytes=count, first=kind)
    with k.when(one["shadow"].differs(0)):
        written = k.memory(one["shadow"] + (address - one["begin"]), BYTE)
        with k.loop("byte", count) as place:
            with k.when((kind & READ).differs(0) & written[place].equals(0)):
                k.complain(thread, "unwritten_global", line, address=address + place, bytes=count, first=kind)
            with k.when((kind & WRITE).differs(0)):
                written[place] = k.constant(1, BYTE)
    with k.when(one["touched"].differs(0)):
        begin = one["touched"] + (address - one["begin"]) * TOUCHED_BYTES
        k.do("access_touched", where, begin, count, kind, line, address)


def _touched(module: Any) -> None:
    """touched(thread, records, bytes, kind, line, address): keep who was there in global memory, and look for races.

    Blocks are ordered by nothing, threads of a block as in shared memory.
    """
    k = Native(module, "access_touched", 6)
    where, begin, count, kind, line, address = k.arguments()
    thread = thread_of(k, where)
    block = k.record(BLOCK, thread["block"])["number"] + 1
    writes, atomic = (kind & WRITE).differs(0), (kind & ATOMIC).differs(0)
    mark = k.call("access_mark", where)
    own = k.variable(k.select(atomic, mark | ATOMICALLY, mark))
    with k.loop("byte", count) as place:
        spot = k.record(TOUCHED, begin + place * TOUCHED_BYTES)
        both = atomic & (spot["writer"] & ATOMICALLY).differs(0)
        for name, whose, wanted in _TOUCHES:
            other, known = spot[name], spot[whose]
            there = known.differs(0) & other.differs(0) & (writes if wanted else ~both)
            with k.when(there & known.differs(block)):
                k.complain(thread, "race_of_blocks", line, address=address + place, bytes=count, first=kind)
            with k.when(there & known.equals(block)), _unordered(k, where, other & (ATOMICALLY - 1)):
                k.complain(thread, "race_global", line, address=address + place, bytes=count, first=other)
        with k.when(writes):
            spot["writer"], spot["writer_block"] = own.value, block
            spot["reader"], spot["other"], spot["reader_block"] = k.number(0), k.number(0), k.number(0)
        with k.when(~writes):
            alone = spot["reader_block"].equals(0) | spot["reader_block"].equals(block)
            _remember(k, where, spot, own.value)
            spot["reader_block"] = k.select(alone, block, k.number(_SEVERAL))
    k.finish()


def _shared(module: Any) -> None:
    """shared(thread, address, bytes, kind, line): the address on the host."""
    k = Native(module, "access_shared", 5, returns=True)
    where, given, count, kind, line = k.arguments()
    thread = thread_of(k, where)
    launch = k.record(LAUNCH, thread["launch"])
    address = (given & 0xFFFFFFFF) - SHARED_BASE
    result = k.variable(_trash(k))
    with k.either((address < 0) | (address + count > launch["shared_bytes"])) as (then, otherwise):
        with then:
            k.complain(thread, "outside_shared", line, address=address, bytes=count, first=kind)
        with otherwise:
            with k.when((address & (count - 1)).differs(0)):
                k.complain(thread, "misaligned_shared", line, address=address, bytes=count, first=kind)
            with k.when(launch["strict"].differs(0)):
                k.do("access_seen", where, address, count, kind, line)
            result.value = thread["shared"] + address
    k.finish(result.value)


def _seen(module: Any) -> None:
    """seen(thread, place in shared memory, bytes, kind, line): keep who was there, and look for races."""
    k = Native(module, "access_seen", 5)
    where, begin, count, kind, line = k.arguments()
    thread = thread_of(k, where)
    block = k.record(BLOCK, thread["block"])
    atomic = (kind & ATOMIC).differs(0)
    mark = k.call("access_mark", where)
    own = k.variable(k.select(atomic, mark | ATOMICALLY, mark))
    base, now, shadow = block["base"], block["epoch"], block["shadow"] + begin * SHADOW_BYTES
    with k.loop("byte", count) as place:
        spot = k.record(SHADOW, shadow + place * SHADOW_BYTES)
        raw = spot["writer"]
        writer = raw & (_IN_FLIGHT - 1)
        written = _epoch(writer) >= base
        both = atomic & (writer & ATOMICALLY).differs(0)
        details = {"address": begin + place, "bytes": count}
        with k.when(written & (raw < 0)):
            k.complain(thread, "pending", line, **details, first=writer)
        with k.when((kind & READ).differs(0) & ~written):
            k.complain(thread, "unwritten_shared", line, **details)
        with k.when((_epoch(writer) >= now) & writer.differs(own.value) & ~both), _unordered(k, where, writer):
            with k.when((kind & WRITE).differs(0)):
                k.complain(thread, "race_writes", line, **details, first=writer)
            with k.when((kind & WRITE).equals(0)):
                k.complain(thread, "race_read_after_write", line, **details, first=writer)
        with k.when((kind & WRITE).differs(0)):
            for name in ("reader", "other"):
                reader = spot[name]
                with k.when((_epoch(reader) >= now) & reader.differs(own.value)), _unordered(k, where, reader):
                    k.complain(thread, "race_write_after_read", line, **details, first=reader)
            spot["writer"], spot["reader"], spot["other"] = own.value, k.number(0), k.number(0)
        with k.when((kind & WRITE).equals(0)):
            _remember(k, where, spot, own.value)
    k.finish()


def _unordered(k: Native, where: Value, mark: Value) -> AbstractContextManager[None]:
    """What is done where nothing orders that access before what the thread does now."""
    return k.when(k.call("access_ordered", where, mark).equals(0))


def _epoch(mark: Value) -> Value:
    return mark >> (THREAD_BITS + STAMP_BITS) & ((1 << EPOCH_BITS) - 1)


def _remember(k: Native, where: Value, spot: Record, own: Value) -> None:
    """Keep a reader, and one other that is not known to be through."""
    reader = spot["reader"]
    with k.when(reader.differs(own)):
        same = ((reader ^ own) & ((1 << THREAD_BITS) - 1)).equals(0)
        with k.when(reader.differs(0) & ~same), k.when(k.call("access_ordered", where, reader).equals(0)):
            spot["other"] = reader
        spot["reader"] = own


def _mark(module: Any) -> None:
    """mark(thread): who accesses, as it is kept."""
    k = Native(module, "access_mark", 1, returns=True)
    thread = thread_of(k, k.argument(0))
    block = k.record(BLOCK, thread["block"])
    clock = k.memory(block["warps"])[thread["warp"] * 33]
    k.finish(block["epoch"] << (THREAD_BITS + STAMP_BITS) | clock << THREAD_BITS | thread["index"])


def _ordered(module: Any) -> None:
    """ordered(thread, mark): whether that access surely came before what the thread does now."""
    k = Native(module, "access_ordered", 2, returns=True)
    where, mark = k.arguments()
    thread = thread_of(k, where)
    block = k.record(BLOCK, thread["block"])
    other = mark & ((1 << THREAD_BITS) - 1)
    stamp = (mark >> THREAD_BITS) & ((1 << STAMP_BITS) - 1)
    before = _epoch(mark) < block["epoch"]
    found = k.variable(k.select(before | other.equals(thread["index"]), k.number(1), k.number(0)))
    with k.when(found.value.equals(0)):
        warp = other >> 5
        of_lanes = k.memory(block["lanes"] + (thread["index"] * 32 + (other & 31)) * WORD)
        of_warps = k.memory(block["warps"] + (thread["warp"] * 33 + 1 + warp) * WORD)
        known = k.select(warp.equals(thread["warp"]), of_lanes[0], of_warps[0])
        found.value = k.select(stamp < known, k.number(1), k.number(0))
    k.finish(found.value)


def _local(module: Any) -> None:
    """local(thread, address, bytes, kind, line): memory of the thread's own."""
    k = Native(module, "access_local", 5, returns=True)
    where, address, count, kind, line = k.arguments()
    thread = thread_of(k, where)
    begin = thread["local"]
    result = k.variable(address)
    outside = (address < begin) | (address + count > begin + thread["local_bytes"])
    with k.when(outside | (address & (count - 1)).differs(0)):
        k.complain(thread, "local", line, address=address - begin, bytes=count, first=kind)
        result.value = _trash(k)
    k.finish(result.value)


def _generic(module: Any) -> None:
    """generic(thread, address, bytes, kind, line): wherever the address is."""
    k = Native(module, "access_generic", 5, returns=True)
    where, address, count, kind, line = k.arguments()
    thread = thread_of(k, where)
    launch = k.record(LAUNCH, thread["launch"])
    shared, local = address - thread["shared"], address - thread["local"]
    in_shared = (shared >= 0) & (shared < launch["shared_bytes"])
    in_local = (local >= 0) & (local < thread["local_bytes"])
    result = k.variable(address)
    with k.either(in_shared) as (then, otherwise):
        with then:
            result.value = k.call("access_shared", where, shared + SHARED_BASE, count, kind, line)
        with otherwise, k.either(in_local) as (inside, elsewhere):
            with inside:
                result.value = k.call("access_local", where, address, count, kind, line)
            with elsewhere:
                result.value = k.call("access_global", where, address, count, kind, line)
    k.finish(result.value)
