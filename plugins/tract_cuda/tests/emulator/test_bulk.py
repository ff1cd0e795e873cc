"""Barriers in shared memory, and copies of many bytes that they wait for."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_texts import kernel, launch
from tract_cuda.testing.emulator import EmulationError

X = np.arange(256, dtype="u4")
ORDERS = range(20)
INIT = """setp.ne.u32 %p1, %r0, 0;
mov.u32 %r1, s;
add.u32 %r2, %r1, 1024;
@!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
fence.mbarrier_init.release.cluster;
bar.sync 0;
"""
COPY = """@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d0], 1024, [%r2];
WAIT:
"""
TRY = """mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
"""
TWICE = "mbarrier.arrive.shared.b64 _, [%r2];"
READ = """shl.b32 %r3, %r0, 2; add.u32 %r4, %r1, %r3; ld.shared.u32 %r5, [%r4];
mad.wide.u32 %d10, %r0, 4, %d1; st.global.u32 [%d10], %r5;"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_that_a_barrier_waits_for(order: int) -> None:
    found = launch(kernel(INIT + COPY + TRY + READ, shared=1032), [X, X * 0, X, X], 256, order=order)[1]
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (INIT + COPY + READ, "a copy of thread 0 is on its way|written by nobody|with no barrier"),
        (INIT + COPY.replace("1024, [%r2]", "2048, [%r2]") + TRY + READ, "which no allocation|ends before"),
        (INIT + COPY.replace("], 1024;", "], 1040;") + TRY + READ, "it goes on and on"),
        (INIT.replace("bar.sync 0;", "") + COPY + TRY + READ, "written by nobody|that thread 0 makes, with no barrier"),
        (INIT + COPY.replace("WAIT:", TWICE + "WAIT:") + TRY + READ, "one more than the barrier"),
    ],
)  # fmt: skip
def test_faults_are_found(code: str, message: str, order: int) -> None:
    with pytest.raises(EmulationError, match=message):
        launch(kernel(code, shared=1032), [X] * 4, 256, order=order)


@pytest.mark.parametrize("order", ORDERS)
def test_arrivals_order_what_was_written(order: int) -> None:
    """All arrive, and each waits for the phase in which it did."""
    code = (
        INIT.replace("1;\nfence", "64;\nfence")
        + """shl.b32 %r3, %r0, 2; add.u32 %r4, %r1, %r3; st.shared.u32 [%r4], %r0;
mbarrier.arrive.shared.b64 %d9, [%r2];
WAIT: mbarrier.test_wait.shared.b64 %p2, [%r2], %d9; @!%p2 bra WAIT;
xor.b32 %r4, %r4, 252; ld.shared.u32 %r5, [%r4]; mad.wide.u32 %d10, %r0, 4, %d1; st.global.u32 [%d10], %r5;"""
    )
    found = launch(kernel(code, shared=1032), [X] * 4, 64, order=order)[1]
    np.testing.assert_array_equal(found[:64], np.arange(64) ^ 63)
    with pytest.raises(EmulationError, match=r"with no barrier between|written by nobody"):
        launch(kernel(re.sub("WAIT.*WAIT;", "", code), shared=1032), [X] * 4, 64, order=order)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("[%d0], 1024,", "[%d0], -16,"), "which no allocation has|which ends before"),
        (("[%d0],", "[%d0+16],"), "which no allocation has"),
        (("bytes [%r1]", "bytes [%r2]"), "of shared memory, which ends before"),
    ],
)
def test_copies_from_and_to_outside_end_the_launch_and_nothing_else(changed: tuple[str, str], message: str) -> None:
    code = INIT + COPY.replace(*changed) + TRY
    with pytest.raises(EmulationError, match=message):
        launch(kernel(code, shared=1040), [X, X * 0, X, X], 256)
