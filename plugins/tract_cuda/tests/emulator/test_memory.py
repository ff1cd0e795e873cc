"""Memory: what may be reached, what was written, what races, and what arrives late."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_texts import kernel, launch
from tract_cuda.testing.emulator import EmulationError, Emulator, Range, aligned

X = np.arange(64, dtype="u4")
ORDERS = range(20)
OWN = "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2;\n"
"""%r3: the thread's own word in shared memory."""
GLOBAL = "mad.wide.u32 %d10, %r0, 4, %d0;\n"
"""%d10: its own word of the first array."""


def refused(code: str, message: str, *, threads: int = 32, shared: int = 0, **options: object) -> str:
    """The text of the error, which says that."""
    with pytest.raises(EmulationError, match=message) as found:
        launch(kernel(code, shared=shared), [X.copy()] * 4, threads, **options)
    return str(found.value)


# ---- what may be reached


@pytest.mark.parametrize("access", ["ld.global.u32 %r1, [%d10];", "st.global.u32 [%d10], %r0;", "ld.u32 %r1, [%d10];"])
def test_outside_of_every_allocation(access: str) -> None:
    does = "writes" if "st." in access else "reads"
    text = refused(
        f"{GLOBAL}add.u64 %d10, %d10, 252;\n{access}", f"it {does} 4 bytes at 0x[0-9a-f]+, which no allocation"
    )
    assert "kernel 'k', block (0, 0, 0), thread (1, 0, 0)" in text
    assert f"of the PTX, '{access}" in text
    assert "line 18 of the PTX" in text


def test_an_access_that_ends_outside() -> None:
    refused("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+256];", "it reads 16 bytes")
    refused("ld.global.u64 %d1, [%d0+252];", "8 bytes")


def test_not_aligned() -> None:
    refused("ld.global.u32 %r1, [%d0+2];", "which is no multiple of 4")
    refused("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+8];", "which is no multiple of 16")
    refused("st.shared.u32 [s+2], %r0;", "of shared memory, which is no multiple of 4", shared=64)


def test_outside_of_shared_memory() -> None:
    refused("st.shared.u32 [s+64], %r0;", "writes 4 bytes at 64 of shared memory, which ends before", shared=64)
    refused("mov.u32 %r1, 0; st.shared.u32 [%r1], %r0;", "of shared memory, which ends", shared=64)


def test_memory_that_is_only_read() -> None:
    array = aligned(X)
    memory = [Range(array.ctypes.data, array.nbytes, writable=False)]
    emulator = Emulator(kernel(f"{GLOBAL}ld.global.u32 %r1, [%d10]; st.global.u32 [%d10], %r1;", 1))
    with pytest.raises(EmulationError, match="which may only be read"):
        emulator.launch("k", (1,), (32,), 0, [array.ctypes.data], memory=memory)


def test_global_memory_that_nobody_wrote() -> None:
    code = f"{GLOBAL}mad.wide.u32 %d11, %r0, 4, %d1;\nst.global.u32 [%d11], %r0;\n"
    again = "ld.global.u32 %r1, [%d11]; st.global.u32 [%d10], %r1;"
    found = launch(kernel(code + again), [X] * 4, 64, written=[1])
    np.testing.assert_array_equal(found[0], np.arange(64))
    with pytest.raises(EmulationError, match="that nobody wrote"):
        launch(kernel(f"{GLOBAL}ld.global.u32 %r1, [%d10];"), [X] * 4, 32, written=[0])


def test_memory_of_threads_own() -> None:
    code = """.local .align 8 .b8 own[16];
mov.u64 %d10, own; cvta.local.u64 %d11, %d10;
st.local.u32 [own+4], %r0; ld.u32 %r1, [%d11+4]; ld.local.u32 %r2, [%d10+4];
add.u32 %r3, %r1, %r2; mad.wide.u32 %d12, %r0, 4, %d0; st.global.u32 [%d12], %r3;"""
    np.testing.assert_array_equal(launch(kernel(code), [X] * 4, 64)[0], 2 * np.arange(64))
    refused(".local .align 8 .b8 own[16]; st.local.u32 [own+16], %r0;", "of its own memory, which is outside")


def test_addresses_of_any_memory() -> None:
    code = f"""{OWN}cvt.u64.u32 %d10, %r3; cvta.shared.u64 %d11, %d10;
st.u32 [%d11], %r0; ld.shared.u32 %r4, [%r3]; cvta.to.shared.u64 %d12, %d11; ld.shared.u32 %r5, [%d12];
isspacep.shared %p1, %d11; selp.u32 %r6, 100, 0, %p1; isspacep.global %p2, %d0; selp.u32 %r7, 1000, 0, %p2;
add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7;
mad.wide.u32 %d13, %r0, 4, %d0; st.u32 [%d13], %r4;"""
    found = launch(kernel(code, shared=256), [X] * 4, 64)[0]
    np.testing.assert_array_equal(found, 2 * np.arange(64) + 1100)


def test_tables_of_constants() -> None:
    before = """.const .align 4 .u32 odd[4] = {1, 3, 5, 7};
.global .align 8 .f64 halves[2] = {0d3FE0000000000000, 0d3FF8000000000000};
"""
    code = """and.b32 %r1, %r0, 3; mul.wide.u32 %d10, %r1, 4; mov.u64 %d11, odd; add.u64 %d12, %d11, %d10;
ld.const.u32 %r2, [%d12]; ld.global.u32 %r3, [halves+12];
add.u32 %r2, %r2, %r3; mad.wide.u32 %d13, %r0, 4, %d0; st.global.u32 [%d13], %r2;"""
    found = launch(kernel(code, before=before), [X] * 4, 64)[0]
    np.testing.assert_array_equal(found, np.arange(64) % 4 * 2 + 1 + 0x3FF80000)


# ---- shared memory


def test_shared_memory_that_nobody_wrote() -> None:
    refused(f"{OWN}ld.shared.u32 %r4, [%r3];", "written by nobody", shared=256)
    refused(f"{OWN}st.shared.u16 [%r3], %h1; ld.shared.u32 %r4, [%r3];", "of which that at 2 was written", shared=256)


def test_it_is_forgotten_by_the_next_block() -> None:
    code = (
        f"{OWN}mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 0; @%p1 st.shared.u32 [%r3], %r0; ld.shared.u32 %r4, [%r3];"
    )
    refused(code, "written by nobody", shared=256, grid=2, resident=1)


NEXT = """add.u32 %r4, %r0, 1; and.b32 %r4, %r4, 63; shl.b32 %r5, %r4, 2; add.u32 %r6, %r1, %r5;
"""
"""%r6: the word of the next thread."""


def exchange(sync: str) -> str:
    return (
        f"{OWN}{NEXT}st.shared.u32 [%r3], %r0;\n{sync}\nld.shared.u32 %r7, [%r6];\n{GLOBAL}st.global.u32 [%d10], %r7;"
    )


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_orders_accesses(order: int) -> None:
    found = launch(kernel(exchange("bar.sync 0;"), shared=256), [X] * 4, 64, order=order)[0]
    np.testing.assert_array_equal(found, (np.arange(64) + 1) % 64)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_without_a_barrier_there_is_a_race(order: int) -> None:
    refused(exchange(""), "with no barrier between|written by nobody", threads=64, shared=256, order=order)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_shuffle_orders_no_memory(order: int) -> None:
    """Of one warp: the language promises nothing, though devices may go in step."""
    code = exchange("shfl.sync.idx.b32 %r9, %r0, 0, 31, -1;").replace("63", "31")
    refused(code, "with no barrier between", shared=256, order=order)


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_of_a_warp_does(order: int) -> None:
    code = exchange("bar.warp.sync -1;").replace("63", "31")
    found = launch(kernel(code, shared=256), [X] * 4, 32, order=order)[0]
    np.testing.assert_array_equal(found[:32], (np.arange(32) + 1) % 32)


def test_a_barrier_of_a_warp_is_none_for_others() -> None:
    refused(exchange("bar.warp.sync -1;"), "with no barrier between|written by nobody", threads=64, shared=256)


def test_reading_at_the_same_time_is_no_race() -> None:
    code = f"{OWN}setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], 5; bar.sync 0; ld.shared.u32 %r4, [s];"
    launch(kernel(code, shared=256), [X] * 4, 64)


def test_writing_what_others_still_read() -> None:
    code = f"{exchange('bar.sync 0;')} st.shared.u32 [%r3], %r0;"
    refused(code, "which thread [0-9]+ reads, with no barrier between", threads=64, shared=256)


def test_both_halves_of_a_word_are_no_race() -> None:
    code = "mov.u32 %r1, s; shl.b32 %r2, %r0, 1; add.u32 %r3, %r1, %r2; st.shared.u16 [%r3], %h1;"
    launch(kernel("mov.u16 %h1, 1;" + code, shared=256), [X] * 4, 64)


def test_all_writing_the_same_place() -> None:
    refused("st.shared.u32 [s], %r0;", "which thread [0-9]+ writes too", shared=64)


# ---- barriers


def test_a_barrier_that_some_leave_out() -> None:
    text = refused(
        "setp.lt.u32 %p1, %r0, 32; @%p1 bra OUT; bar.sync 0; OUT:", "it waits for a barrier, which never", threads=64
    )
    assert "'setp.lt.u32" in text or "bar.sync 0" in text


def test_lanes_of_a_warp_at_two_barriers() -> None:
    code = """setp.lt.u32 %p1, %r0, 16;
@%p1 bra FIRST;
bar.sync 0;
bra OUT;
FIRST:
bar.sync 0;
OUT:"""
    refused(code, "and the first thread of its warp at another")


@pytest.mark.parametrize("order", ORDERS)
def test_barriers_of_some_warps(order: int) -> None:
    """Two warps hand a word to two others, without waiting themselves."""
    code = f"""{OWN}setp.ge.u32 %p1, %r0, 64;
@%p1 bra TAKE;
st.shared.u32 [%r3], %r0;
bar.arrive 1, 128;
bra OUT;
TAKE:
bar.sync 1, 128;
sub.u32 %r4, %r3, 256;
ld.shared.u32 %r5, [%r4];
sub.u32 %r6, %r0, 64;
mad.wide.u32 %d10, %r6, 4, %d0;
st.global.u32 [%d10], %r5;
OUT:"""
    found = launch(kernel(code, shared=512), [X] * 4, 128, order=order)[0]
    np.testing.assert_array_equal(found, np.arange(64))


def test_barriers_of_some_warps_order_no_others() -> None:
    code = f"""{OWN}setp.ge.u32 %p1, %r0, 64;
@%p1 bra OUT;
setp.ge.u32 %p2, %r0, 32;
st.shared.u32 [%r3], %r0;
bar.sync 1, 64;
OUT:
setp.lt.u32 %p3, %r0, 96;
@%p3 bra END;
ld.shared.u32 %r5, [s];
END:"""
    refused(code, "with no barrier between|written by nobody", threads=128, shared=512)


def test_other_numbers_of_threads_at_one_barrier() -> None:
    code = "setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 1, 96;"
    refused(code, "with other numbers than may be", threads=64)
    refused("bar.sync 16;", "with other numbers than may be: 16")


# ---- races in global memory


SPOT = "mov.u32 %r8, %ctaid.x; mad.lo.u32 %r9, %r8, 32, %r0; mad.wide.u32 %d10, %r9, 4, %d0;\n"
"""%d10: the word of the thread, of which blocks have 32 each."""
BESIDE = "mad.wide.u32 %d11, %r1, 4, %d0;\n"
LOAD, STORE = "ld.global.u32 %r1, [{}];\n", "st.global.u32 [{}], %r9;\n"


def raced(code: str, message: str, *, grid: int = 2, threads: int = 32, order: int = 0) -> None:
    with pytest.raises(EmulationError, match=message):
        launch(kernel(SPOT + code), [X.copy()] * 4, threads, grid, raced=True, order=order)


@pytest.mark.parametrize("order", [0, 1, 2, 7])
@pytest.mark.parametrize("code", [STORE.format("%d0"), LOAD.format("%d0") + STORE.format("%d10")])
def test_blocks_race_in_global_memory(code: str, order: int) -> None:
    """The first block writes to where the other one is, whichever comes first."""
    raced(f"setp.ne.u32 %p1, %r0, 0; @%p1 bra END;\n{code}END:", "which another block touches too", order=order)


@pytest.mark.parametrize("order", [0, 1, 2, 7])
@pytest.mark.parametrize("code", [STORE.format("%d0"), LOAD.format("%d0") + STORE.format("%d10")])
def test_threads_race_in_global_memory(code: str, order: int) -> None:
    raced(code, "which thread [0-9]+ touches too, with no barrier between", grid=1, order=order)


def test_many_readers_race_with_a_writer() -> None:
    code = f"setp.eq.u32 %p1, %r8, 2; @!%p1 bra READ; bra WRITE;\nREAD: {LOAD.format('%d0')}bra END;\nWRITE: "
    raced(f"{code}setp.eq.u32 %p2, %r0, 0; @%p2 st.global.u32 [%d0], %r9;\nEND:", "another block touches", grid=3)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "code",
    [
        LOAD.format("%d10") + STORE.format("%d10"),
        LOAD.format("%d0"),
        "red.global.add.u32 [%d0], %r9;",
        f"{STORE.format('%d10')}bar.sync 0; xor.b32 %r1, %r9, 1; {BESIDE}{LOAD.format('%d11')}",
        "cvt.u16.u32 %h1, %r9; mad.wide.u32 %d11, %r9, 2, %d0; st.global.u16 [%d11], %h1;",
    ],
)
def test_what_is_no_race_in_global_memory(code: str, order: int) -> None:
    launch(kernel(SPOT + code), [X.copy()] * 4, 32, 2, raced=True, order=order)


def test_an_access_in_one_step_races_with_others() -> None:
    raced(f"red.global.add.u32 [%d0], %r9;\n{LOAD.format('%d0')}", "touches too")


# ---- atomics


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("red.global.add.u32 [%d0], %r0;", sum(range(64))),
        ("atom.global.max.u32 %r1, [%d0], %r0;", 63),
        ("atom.global.min.s32 %r1, [%d0], -7;", 2**32 - 7),
        ("red.global.or.b32 [%d0], %r0;", 63),
        ("atom.global.exch.b32 %r1, [%d0], 9;", 9),
        ("atom.global.inc.u32 %r1, [%d0], 9;", 64 % 10),
        ("red.relaxed.gpu.global.add.f32 [%d0], 0f3F800000;", int(np.float32(64).view("u4"))),
        ("red.global.add.noftz.f16x2 [%d0], %r200;", 0x54005400),
        ("red.global.add.noftz.bf16x2 [%d0], %r201;", 0x42804280),
    ],
)
@pytest.mark.parametrize("order", [0, 1, 5])
def test_atomics(code: str, wanted: int, order: int) -> None:
    start = "mov.u32 %r200, 0x3C003C00; mov.u32 %r201, 0x3F803F80;"
    zeros = np.zeros(64, "u4")
    found = launch(kernel(start + code), [zeros] * 4, 64, order=order)[0]
    assert found[0] == wanted


@pytest.mark.parametrize("order", ORDERS)
def test_a_lock(order: int) -> None:
    """Compare and swap; what it guards is changed by one thread at a time."""
    code = """LOOP:
atom.acquire.gpu.global.cas.b32 %r1, [%d0], 0, 1;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra LOOP;
ld.volatile.global.u32 %r2, [%d0+4];
add.u32 %r2, %r2, 1;
st.volatile.global.u32 [%d0+4], %r2;
atom.release.gpu.global.exch.b32 %r3, [%d0], 0;"""
    found = launch(kernel(code), [np.zeros(64, "u4")] * 4, 64, 3, order=order)[0]
    assert found[1] == 64 * 3


def test_atomics_of_shared_memory_are_no_race() -> None:
    code = f"""setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0;
red.shared.add.u32 [s], %r0; bar.sync 0; ld.shared.u32 %r2, [s]; {GLOBAL}st.global.u32 [%d10], %r2;"""
    found = launch(kernel(code, shared=64), [X] * 4, 64)[0]
    np.testing.assert_array_equal(found, np.full(64, 2016))
    refused(code.replace("red.shared.add.u32 [s], %r0; bar.sync 0;", "red.shared.add.u32 [s], %r0;"),
            "with no barrier between", threads=64, shared=64)  # fmt: skip


# ---- copies that arrive later


COPY = "shl.b32 %r2, %r0, 4; mov.u32 %r1, s; add.u32 %r3, %r1, %r2; mad.wide.u32 %d10, %r0, 16, %d0;\n"
START = "cp.async.cg.shared.global [%r3], [%d10], 16;\n"
READ = "ld.shared.u32 %r4, [%r3+4]; mad.wide.u32 %d11, %r0, 4, %d1; st.global.u32 [%d11], %r4;"


@pytest.mark.parametrize("order", ORDERS)
def test_copies(order: int) -> None:
    code = f"{COPY}{START}cp.async.commit_group; cp.async.wait_group 0; {READ}"
    found = launch(kernel(code, shared=256), [X, X, X, X], 16, order=order)[1]
    np.testing.assert_array_equal(found[:16], 4 * np.arange(16) + 1)


@pytest.mark.parametrize(
    "wait", ["", "cp.async.commit_group;", "cp.async.wait_group 0;", "cp.async.commit_group; cp.async.wait_group 1;"]
)
def test_copies_that_nobody_waited_for(wait: str) -> None:
    refused(f"{COPY}{START}{wait}{READ}", "to which a copy of thread 0 is on its way", threads=16, shared=256)


def test_copies_are_seen_by_others_after_a_barrier_only() -> None:
    code = f"{COPY}{START}cp.async.wait_all; xor.b32 %r3, %r3, 16; {READ}"
    refused(code, "written by nobody", threads=16, shared=256)
    refused(code, "with no barrier between|a copy of thread|written by nobody", threads=16, shared=256, order=7)
    launch(kernel(code.replace("wait_all;", "wait_all; bar.sync 0;"), shared=256), [X] * 4, 16)


def test_copies_over_what_others_read() -> None:
    """They may arrive at once."""
    code = f"{COPY}{START}cp.async.wait_all; bar.sync 0; xor.b32 %r3, %r3, 16; {READ} xor.b32 %r3, %r3, 16; {START}"
    refused(code, "to which a copy of thread 0 is on its way", threads=16, shared=256)


def test_copies_of_less_than_all() -> None:
    code = f"{COPY}mov.u32 %r9, 8; cp.async.cg.shared.global [%r3], [%d10], 16, %r9;\ncp.async.wait_all;"
    code += "ld.shared.u32 %r4, [%r3+4]; ld.shared.u32 %r5, [%r3+8];\n"
    code += "mad.wide.u32 %d11, %r0, 8, %d1; st.global.v2.u32 [%d11], {%r4, %r5};"
    found = launch(kernel(code, shared=256), [X, X, X, X], 16)[1]
    np.testing.assert_array_equal(found[:32:2], 4 * np.arange(16) + 1)
    np.testing.assert_array_equal(found[1:32:2], np.zeros(16))


def test_copies_from_outside() -> None:
    refused(f"{COPY}{START}", "which no allocation has", threads=17, shared=512)


def test_copies_from_far_outside_end_the_launch_and_nothing_else() -> None:
    far = "mov.u64 %d10, 64; cp.async.cg.shared.global [%r3], [%d10], 16;\n"
    refused(f"{COPY}{far}cp.async.wait_all;", "it reads 1 bytes at 0x40, which no allocation has", shared=512)


@pytest.mark.parametrize("count", [17, 0xFFFFFFF0])
def test_copies_of_more_than_all(count: int) -> None:
    code = f"{COPY}mov.u32 %r9, {count}; cp.async.cg.shared.global [%r3], [%d10], 16, %r9;\ncp.async.wait_all;"
    refused(code, f"it copies {count} bytes at 0x[0-9a-f]+, of 16 at most", threads=16, shared=256)


# ---- what never ends, and what gives up


def test_what_goes_on_for_ever() -> None:
    refused("LOOP: add.u32 %r1, %r1, 1; bra LOOP;", "it goes on and on")
    refused("LOOP: ld.volatile.global.u32 %r1, [%d0+4]; setp.ne.u32 %p1, %r1, 77; @%p1 bra LOOP;", "on and on", order=3)


def test_a_trap() -> None:
    refused("setp.eq.u32 %p1, %r0, 3; @%p1 trap;", "it gives up")


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_that_wait_for_each_other(order: int) -> None:
    code = """setp.ne.u32 %p1, %r0, 0;
@%p1 bra WAIT;
red.release.gpu.global.add.u32 [%d0], 1;
LOOP:
ld.acquire.gpu.global.u32 %r1, [%d0];
setp.lt.u32 %p2, %r1, 8;
@%p2 bra LOOP;
WAIT:
bar.sync 0;"""
    zeros = np.zeros(64, "u4")
    assert launch(kernel(code), [zeros] * 4, 64, 8, order=order, resident=8)[0][0] == 8


def test_blocks_that_are_not_all_there() -> None:
    code = """red.global.add.u32 [%d0], 1;
LOOP: ld.acquire.gpu.global.u32 %r1, [%d0]; setp.lt.u32 %p2, %r1, 256; @%p2 bra LOOP;"""
    with pytest.raises(EmulationError, match="it goes on and on"):
        launch(kernel(code), [np.zeros(64, "u4")] * 4, 32, 8, resident=4)


# ---- launches


def test_launches_that_no_device_takes() -> None:
    text = kernel("mov.u32 %r1, 0;", 1).replace("\n{", "\n.maxntid 64, 1, 1\n{", 1)
    emulator = Emulator(text)
    for grid, block, shared, arguments, message in (
        ((1,), (128,), 0, [0], "128 threads, where the kernel bears 64"),
        ((0,), (32,), 0, [0], "a grid of"),
        ((1,), (2048,), 0, [0], "blocks of 2048 threads"),
        ((1,), (32,), 1 << 20, [0], "1048576 bytes of shared memory"),
        ((1,), (32,), 0, [0, 1], "2 arguments for 1 parameters"),
    ):
        with pytest.raises(EmulationError, match=message):
            emulator.launch("k", grid, block, shared, arguments, memory=[])
    with pytest.raises(EmulationError, match="there is no kernel 'other', but k"):
        emulator.launch("other", (1,), (32,), 0, [], memory=[])


def test_threads_and_blocks_along_all_axes() -> None:
    code = """mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
mov.u32 %r6, %ntid.x; mov.u32 %r7, %ntid.y; mov.u32 %r8, %ntid.z; mov.u32 %r9, %nctaid.x;
mad.lo.u32 %r10, %r5, %r9, %r4; mad.lo.u32 %r10, %r10, %r8, %r3; mad.lo.u32 %r10, %r10, %r7, %r2;
mad.lo.u32 %r10, %r10, %r6, %r1; mad.wide.u32 %d10, %r10, 4, %d0; st.global.u32 [%d10], %r10;"""
    for order in (0, 1, 9):
        found = launch(kernel(code), [np.zeros(2 * 3 * 4 * 5 * 6, "u4")] * 4, (4, 3, 2), (5, 6), order=order)[0]
        np.testing.assert_array_equal(found, np.arange(found.size))
