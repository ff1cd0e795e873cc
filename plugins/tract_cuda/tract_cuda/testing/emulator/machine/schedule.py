"""In which order blocks, warps and threads go on."""

from __future__ import annotations

from typing import Any, Final

from tract_llvm.language.values import Value

from tract_cuda.testing.emulator.machine.layout import (
    AXES,
    BARRIER,
    BARRIERS,
    BLOCK,
    DONE,
    GROUP,
    LAUNCH,
    READY,
    TOGETHER,
    TURN,
    WORD,
)
from tract_cuda.testing.emulator.machine.native import Native, Record, thread_of

LONG_TURN: Final = 1 << 16
"""Jumps back until others get their turn, where the order is plain."""
SHORT_TURN: Final = 64
"""The most of them, where it is random."""
MOST_IDLE: Final = 1 << 22
"""Jumps back while no thread gets anywhere, until they count as endless."""
LATE: Final = 6
"""Rounds in which no thread gets anywhere, until a copy arrives that a barrier waits for."""
STEP: Final = 64
"""What a round costs of these, besides."""
POISON: Final = 0xCB


def write(module: Any) -> None:
    """The functions, into a module of llvmlite."""
    _trap(module)
    _random(module)
    _resume(module)
    _warp(module)
    _group(module)
    _step(module)
    _begin(module)
    _end(module)
    _launch(module)


def _trap(module: Any) -> None:
    """trap(thread, line): the kernel gives up."""
    k = Native(module, "trap", 2)
    thread = thread_of(k, k.argument(0))
    k.complain(thread, "trap", k.argument(1))
    k.finish()


def _random(module: Any) -> None:
    """random(launch): 32 bits."""
    k = Native(module, "random", 1, returns=True)
    launch = k.record(LAUNCH, k.argument(0))
    state = launch["random"] * 6364136223846793005 + 1442695040888963407
    launch["random"] = state
    k.finish(state >> 33 & 0x3FFFFFFF)


def _resume(module: Any) -> None:
    """resume(thread): it goes on until it waits."""
    k = Native(module, "resume", 1)
    thread = thread_of(k, k.argument(0))
    launch = k.record(LAUNCH, thread["launch"])
    fuel = k.variable(k.number(LONG_TURN))
    with k.when(launch["order"] > 1):
        fuel.value = k.call("random", launch.address) % SHORT_TURN + 1
    thread["fuel"] = fuel.value
    with k.either(thread["frame"].equals(0)) as (then, otherwise):
        with then:
            thread["frame"] = k.result_at(launch["entry"], [thread.address])
        with otherwise:
            k.call_at(k.memory(thread["frame"])[0], [thread["frame"]])
    k.finish()


def _warp(module: Any) -> None:
    """warp(block, number): the lanes do what they wait to do together, if all are there. Whether some did."""
    k = Native(module, "warp_step", 2, returns=True)
    where, warp = k.arguments()
    block = k.record(BLOCK, where)
    size = block["thread_bytes"]
    first = block["threads"] + warp * 32 * size
    left = block["thread_count"] - warp * 32
    lanes = k.select(left < 32, left, k.number(32))
    all_lanes = (k.number(1) << lanes) - 1
    found = k.variable(k.number(0))
    with k.loop("lane", lanes) as lane:
        thread = thread_of(k, first + lane * size)
        with k.when(thread["wait"].equals(TOGETHER)):
            mask = thread["mask"] & all_lanes
            with k.when((mask >> lane & 1).equals(0)):
                k.complain(thread, "mask", thread["line"], first=thread["mask"])
            missing = k.variable(k.number(0))
            with k.loop("other", lanes) as other, k.when((mask >> other & 1).differs(0)):
                missing.value = missing.value | _elsewhere(k, thread, thread_of(k, first + other * size))
            with k.when(missing.value.equals(0)):
                k.call_at(thread["function"], [first, mask])
                with k.loop("other", lanes) as other, k.when((mask >> other & 1).differs(0)):
                    thread_of(k, first + other * size)["wait"] = k.number(READY)
                found.value = k.number(1)
    k.finish(found.value)


def _elsewhere(k: Native, one: Record, other: Record) -> Value:
    same = (
        other["wait"].equals(one["wait"])
        & other["function"].equals(one["function"])
        & other["mask"].equals(one["mask"])
        & (other["line"].equals(one["line"]) | one["flags"].equals(0))
    )
    return k.select(same, k.number(0), k.number(1))


def _group(module: Any) -> None:
    """group(block, number of its first warp): the same for four warps."""
    k = Native(module, "group_step", 2, returns=True)
    where, warp = k.arguments()
    block = k.record(BLOCK, where)
    size = block["thread_bytes"]
    first = thread_of(k, block["threads"] + warp * 32 * size)
    missing = k.variable(k.select(first["wait"].equals(GROUP), k.number(0), k.number(1)))
    with k.when(missing.value.equals(0)), k.loop("other", 128) as other:
        missing.value = missing.value | _elsewhere(k, first, thread_of(k, first.address + other * size))
    with k.when(missing.value.equals(0)):
        k.call_at(first["function"], [first.address, k.number(0)])
        with k.loop("other", 128) as other:
            thread_of(k, first.address + other * size)["wait"] = k.number(READY)
    k.finish(k.number(1) - missing.value)


def _step(module: Any) -> None:
    """step(block): every thread that can go on does. Whether anything happened; at the end the block is over."""
    k = Native(module, "block_step", 1, returns=True)
    where = k.argument(0)
    block = k.record(BLOCK, where)
    launch = k.record(LAUNCH, block["launch"])
    happened, live, spent = (k.variable(k.number(0)) for _ in range(3))
    chance = k.variable(k.number(0))
    with k.when((launch["order"] > 1) & block["progress"].differs(0)):
        chance.value = k.call("random", launch.address) & k.call("random", launch.address)
    with k.loop("turn", block["thread_count"]) as turn:
        index = k.memory(launch["who"])[turn]
        thread = thread_of(k, block["threads"] + index * block["thread_bytes"])
        with k.when(thread["wait"].equals(TURN)):
            thread["wait"] = k.number(READY)
        with k.when(thread["wait"].differs(DONE)):
            live.value = live.value + 1
        with k.when(thread["wait"].equals(READY)):
            with k.when((chance.value >> (thread["warp"] & 31) & 1).equals(0)):
                k.do("resume", thread.address)
                with k.when(thread["wait"].differs(TURN)):
                    launch["idle"] = k.number(0)
                with k.when(thread["fuel"] <= 0):
                    spent.value = k.select(launch["order"] > 1, k.number(SHORT_TURN), k.number(LONG_TURN))
            happened.value = k.number(1)
    launch["idle"] = launch["idle"] + spent.value + STEP
    late = k.variable(k.number(0))
    with k.when((launch["idle"] > LATE * STEP) | happened.value.equals(0)):
        late.value = k.call("bulk_deliver", where)
    with k.when(late.value.differs(0)):
        launch["idle"], happened.value = k.number(0), k.number(1)
    _meet(k, where, block, happened)
    block["over"] = k.select(live.value.equals(0), k.number(1), k.number(0))
    block["progress"] = happened.value
    k.finish(happened.value)


def _meet(k: Native, where: Value, block: Record, happened: Any) -> None:
    """What warps, groups of warps, and all threads do together."""
    warps = (block["thread_count"] + 31) >> 5
    with k.loop("warp", warps) as warp:
        happened.value = happened.value | k.call("warp_step", where, warp)
    with k.loop("group", warps - 3, 0, 4) as warp:
        happened.value = happened.value | k.call("group_step", where, warp)
    happened.value = happened.value | k.call("barriers_passed", where)


def _begin(module: Any) -> None:
    """begin(block, number in the grid)"""
    k = Native(module, "block_begin", 2)
    block = k.record(BLOCK, k.argument(0))
    launch = k.record(LAUNCH, block["launch"])
    number = k.argument(1)
    block["number"], block["over"], block["progress"] = number, k.number(0), k.number(1)
    block["epoch"] = block["epoch"] + 1
    block["base"] = block["epoch"]
    k.fill(block["shared"], POISON, launch["shared_bytes"])
    with k.loop("barrier", BARRIERS) as index:
        barrier = k.record(BARRIER, block["barriers"] + index * BARRIER.bytes)
        barrier["arrived"], barrier["known"] = k.number(0), k.number(0)
    x, y = launch["grid.x"], launch["grid.y"]
    spot = {"x": number % x, "y": number // x % y, "z": number // (x * y)}
    with k.loop("thread", block["thread_count"]) as index:
        thread = thread_of(k, block["threads"] + index * block["thread_bytes"])
        for axis in AXES:
            thread[f"ctaid.{axis}"] = spot[axis]
        thread["wait"] = k.number(READY)
        for name in ("frame", "copy_count", "groups", "line", "flags"):
            thread[name] = k.number(0)
    k.finish()


def _end(module: Any) -> None:
    """end(block): the threads are gone."""
    k = Native(module, "block_end", 1)
    block = k.record(BLOCK, k.argument(0))
    with k.loop("thread", block["thread_count"]) as index:
        thread = thread_of(k, block["threads"] + index * block["thread_bytes"])
        frame = thread["frame"]
        with k.when(frame.differs(0)):
            k.call_at(k.memory(frame + WORD)[0], [frame])
        thread["frame"] = k.number(0)
    k.finish()


def _launch(module: Any) -> None:
    """launch(launch): all blocks, until they are through or something is wrong."""
    k = Native(module, "run_launch", 1)
    where = k.argument(0)
    launch = k.record(LAUNCH, where)
    with k.loop("slot", launch["resident"]) as slot:
        _take(k, launch, launch["blocks"] + slot * BLOCK.bytes)
    left = k.variable(launch["total"])
    with k.loop_while("round", lambda: (left.value > 0) & launch["error"].equals(0)):
        happened = k.variable(k.number(0))
        with k.loop("slot", launch["resident"]) as slot:
            block = k.record(BLOCK, launch["blocks"] + slot * BLOCK.bytes)
            with k.when(block["over"].equals(0)):
                _burst(k, launch, block, happened)
                with k.when(block["over"].differs(0)):
                    left.value, happened.value = left.value - 1, k.number(1)
                    k.do("block_end", block.address)
                    _take(k, launch, block.address)
        _judge(k, launch, left.value, happened.value)
    with k.loop("slot", launch["resident"]) as slot:
        k.do("block_end", launch["blocks"] + slot * BLOCK.bytes)
    k.finish()


def _take(k: Native, launch: Record, block: Value) -> None:
    """The next block, if there is one, begins."""
    number = launch["next"]
    with k.when(number < launch["total"]):
        k.do("block_begin", block, k.memory(launch["picks"])[number])
        launch["next"] = number + 1


def _burst(k: Native, launch: Record, block: Record, happened: Any) -> None:
    """A few rounds of one block, before others get their turn."""
    rounds = k.variable(k.number(64))
    with k.when(launch["order"].equals(1)):
        rounds.value = k.number(1)
    with k.when(launch["order"] > 1):
        rounds.value = k.call("random", launch.address) % 16 + 1
    with k.loop_while("burst", lambda: (rounds.value > 0) & block["over"].equals(0) & launch["error"].equals(0)):
        did = k.call("block_step", block.address)
        happened.value = happened.value | did
        rounds.value = k.select(did.equals(0), k.number(0), rounds.value - 1)


def _judge(k: Native, launch: Record, left: Value, happened: Value) -> None:
    """Nobody can go on, or nobody gets anywhere."""
    with k.when((left > 0) & launch["error"].equals(0)):
        with k.when(happened.equals(0)):
            _blame(k, launch, "stuck")
        with k.when(launch["idle"] > MOST_IDLE):
            _blame(k, launch, "endless")


def _blame(k: Native, launch: Record, what: str) -> None:
    """One thread that waits, of one block that is not over."""
    with k.loop("slot", launch["resident"]) as slot:
        block = k.record(BLOCK, launch["blocks"] + slot * BLOCK.bytes)
        with k.when(block["over"].equals(0)), k.loop("thread", block["thread_count"]) as index:
            thread = thread_of(k, block["threads"] + index * block["thread_bytes"])
            with k.when(thread["wait"].differs(DONE)):
                k.complain(thread, what, thread["line"], first=thread["wait"], second=thread["number"])
