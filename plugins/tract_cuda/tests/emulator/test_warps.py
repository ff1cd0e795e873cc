"""What the lanes of a warp do together."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_texts import WARP, Array, elementwise, kernel, launch
from tract_cuda.testing.emulator import EmulationError

LANES = np.arange(WARP)
VALUES = np.random.default_rng(0).integers(0, 2**32, WARP, dtype="u4")


def shuffled(how: str, b: int, clamp: int, segment: int) -> tuple[Array, Array]:
    """Which lane each reads, and whether it is in bounds."""
    low = LANES & segment
    most = low | (clamp & ~segment & 31)
    source = {"up": LANES - b, "down": LANES + b, "bfly": LANES ^ b, "idx": low | (b & ~segment & 31)}[how]
    inside = source >= most if how == "up" else source <= most
    return np.where(inside, source, LANES), inside


@pytest.mark.parametrize("how", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize(("b", "segment"), [(1, 0), (3, 0), (5, 24), (16, 16), (31, 0)])
def test_shuffles(how: str, b: int, segment: int) -> None:
    clamp = 0 if how == "up" else 31
    control = clamp | segment << 8
    source, inside = shuffled(how, b, clamp, segment)
    code = f"shfl.sync.{how}.b32 $y, $a, {b}, {control}, 0xffffffff;"
    np.testing.assert_array_equal(elementwise(code, "u4", VALUES), VALUES[source])
    code = f"shfl.sync.{how}.b32 %r1|%p1, $a, {b}, {control}, -1; selp.u32 $y, 1, 0, %p1;"
    np.testing.assert_array_equal(elementwise(code, "u4", VALUES), inside)


def test_half_of_a_warp() -> None:
    """Lanes that are in no mask go on, and others wait for those of theirs only."""
    code = """setp.lt.u32 %p1, %r0, 16;
mov.u32 $y, 7;
@!%p1 bra DONE;
shfl.sync.bfly.b32 $y, $a, 1, 31, 0xffff;
DONE:"""
    found = elementwise(code, "u4", VALUES)
    np.testing.assert_array_equal(found, np.where(LANES < 16, VALUES[LANES ^ 1], 7))


def test_votes() -> None:
    a = (LANES % 3 == 0).astype("u4")
    ballot = int(sum(1 << int(lane) for lane in LANES if a[lane]))
    start = "setp.ne.u32 %p1, $a, 0; "
    found = elementwise(f"{start}vote.sync.ballot.b32 $y, %p1, -1;", "u4", a)
    np.testing.assert_array_equal(found, np.full(WARP, ballot, "u4"))
    for word, values in (("any", (0, 1, 1)), ("all", (0, 0, 1)), ("uni", (1, 0, 1))):
        for held, value in zip((np.zeros(WARP, "u4"), a, np.ones(WARP, "u4")), values, strict=True):
            found = elementwise(f"{start}vote.sync.{word}.pred %p2, %p1, -1; selp.u32 $y, 1, 0, %p2;", "u4", held)
            np.testing.assert_array_equal(found, np.full(WARP, value))


@pytest.mark.parametrize(
    ("name", "function"),
    [("add.u32", np.add), ("min.u32", np.minimum), ("max.u32", np.maximum), ("and.b32", np.bitwise_and),
     ("or.b32", np.bitwise_or), ("xor.b32", np.bitwise_xor)],
)  # fmt: skip
def test_reductions(name: str, function: np.ufunc) -> None:
    found = elementwise(f"redux.sync.{name} $y, $a, -1;", "u4", VALUES)
    np.testing.assert_array_equal(found, np.full(WARP, function.reduce(VALUES), "u4"))


def test_signed_reductions() -> None:
    found = elementwise("redux.sync.min.s32 $y, $a, -1;", "i4", VALUES)
    np.testing.assert_array_equal(found, np.full(WARP, VALUES.view("i4").min()))


def test_lanes_with_the_same_value() -> None:
    a = (LANES % 5).astype("u4")
    wanted = [sum(1 << int(other) for other in LANES if other % 5 == lane % 5) for lane in LANES]
    np.testing.assert_array_equal(elementwise("match.any.sync.b32 $y, $a, -1;", "u4", a), np.array(wanted, "u4"))
    all_of = "match.all.sync.b32 %r1|%p1, $a, -1; selp.u32 $y, %r1, 0, %p1;"
    np.testing.assert_array_equal(elementwise(all_of, "u4", a), np.zeros(WARP))
    np.testing.assert_array_equal(elementwise(all_of, "u4", a * 0), np.full(WARP, 0xFFFFFFFF))


def test_one_lane_is_elected() -> None:
    found = elementwise("elect.sync %r1|%p1, -1; selp.u32 $y, 1, 0, %p1;", "u4", VALUES)
    assert found.sum() == 1


def test_who_is_in_step_is_not_promised() -> None:
    found = elementwise("activemask.b32 $y;", "u4", VALUES)
    assert (found >> LANES & 1).all()


def test_a_lane_that_never_comes() -> None:
    code = "setp.eq.u32 %p1, %r0, 5; @%p1 bra OUT; shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; OUT:"
    with pytest.raises(EmulationError, match="waits for the lanes of its warp, which never comes"):
        launch(kernel(code), [VALUES] * 4)


def test_a_lane_that_is_not_in_the_mask() -> None:
    code = "shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xfffe;"
    with pytest.raises(EmulationError, match="together with lanes among which it is not: 0xfffe"):
        launch(kernel(code), [VALUES] * 4)
