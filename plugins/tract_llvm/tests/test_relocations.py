"""Words of code that tell where something is, taken apart again as the manuals say that processors do."""

from __future__ import annotations

import pytest
from tract_llvm.objects.relocations import MACHINES, CannotLink

ARM, X86 = MACHINES["aarch64"].fits, MACHINES["x86_64"].fits

ADRP, ADD, BL, B = 0x90000008, 0x91000108, 0x94000000, 0x14000000
"""``adrp x8, .``, ``add x8, x8, #0``, ``bl .``, ``b .``: Arm, C6.2."""
LOADS = {278: (0x39400100, 1), 284: (0x79400100, 2), 285: (0xBD400100, 4), 286: (0xFD400100, 8), 299: (0x3DC00100, 16)}
"""``ldrb w0, [x8]``, ``ldrh w0, [x8]``, ``ldr s0, [x8]``, ``ldr d0, [x8]``, ``ldr q0, [x8]``, and what they read."""


def adrp(word: int, place: int) -> int:
    """The page that is meant by ADRP at a place: an immediate of 21 bits, of which bits 29 and 30 are the lowest."""
    pages = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
    return (place & ~0xFFF) + ((pages ^ 1 << 20) - (1 << 20)) * 4096


PLACES = [(0, 0), (0xFFC, 0x1000), (0x1000, 0xFFF), (0x12344, 0x7FFFF010), (0x7FFFF010, 0x64), (0x5000, 0x5FFF)]


@pytest.mark.parametrize(("place", "target"), PLACES, ids=hex)
def test_a_page_and_the_place_in_it_are_a_place(place: int, target: int) -> None:
    page = adrp(ARM[275](ADRP, place, target), place)
    assert page == target - target % 4096
    assert ARM[275](ADRP, place, target) & 0x9F00001F == ADRP
    word = ARM[277](ADD, place, target)
    assert (word & 0xFFC003FF, page + (word >> 10 & 0xFFF)) == (ADD, target)


@pytest.mark.parametrize("kind", LOADS)
def test_what_is_read_is_counted_in_units_of_its_size(kind: int) -> None:
    load, size = LOADS[kind]
    for target in (0, size, 0x1000 - size, 0x123450):
        word = ARM[kind](load, 0x80, target)
        assert word & 0xFFC003FF == load
        assert (word >> 10 & 0xFFF) * size == target % 4096
    if size > 1:
        with pytest.raises(CannotLink, match=f"{size} bytes are read from a place that is no multiple"):
            ARM[kind](load, 0x80, size // 2)


@pytest.mark.parametrize(("kind", "word"), [(282, B), (283, BL)])
def test_jumps_are_counted_in_instructions(kind: int, word: int) -> None:
    assert ARM[kind](word, 0x100, 0x100) == word
    assert ARM[kind](word, 0x100, 0x108) == word | 2
    assert ARM[kind](word, 0x108, 0x100) == word | 0x3FFFFFE
    assert ARM[kind](word, 1 << 27, 0) == word | 1 << 25
    assert ARM[kind](word, 0, (1 << 27) - 4) == word | (1 << 25) - 1
    for place, target in ((0, 1 << 27), ((1 << 27) + 4, 0)):
        with pytest.raises(CannotLink, match="further away than 26 bits can tell"):
            ARM[kind](word, place, target)
    with pytest.raises(CannotLink, match="no instruction begins"):
        ARM[kind](word, 0, 2)


def test_pages_end_at_4_gib() -> None:
    assert adrp(ARM[275](ADRP, 0, (1 << 32) - 1), 0) == (1 << 32) - 4096
    assert adrp(ARM[275](ADRP, 1 << 32, 0), 1 << 32) == 0
    for place, target in ((0, 1 << 32), ((1 << 32) + 4096, 0)):
        with pytest.raises(CannotLink, match="further away than 21 bits can tell"):
            ARM[275](ADRP, place, target)


@pytest.mark.parametrize("fit", [X86[2], X86[4], ARM[261]])
def test_distances_are_32_bits(fit) -> None:
    assert fit(0xAAAAAAAA, 8, 0) == 2**32 - 8
    assert fit(0, 0, 2**31 - 1) == 2**31 - 1
    assert fit(0, 2**31, 0) == 2**31
    for place, target in ((0, 2**31), (2**31 + 1, 0)):
        with pytest.raises(CannotLink, match="further away than 32 bits can tell"):
            fit(0, place, target)


def test_what_a_word_said_before_does_not_count() -> None:
    everywhere = {275: 0x9F00001F, 277: 0xFFC003FF, 286: 0xFFC003FF, 283: 0xFC000000}
    for kind, kept in everywhere.items():
        assert ARM[kind](0xFFFFFFFF & kept, 0x40, 0x12340) == ARM[kind](0xFFFFFFFF, 0x40, 0x12340) & 0xFFFFFFFF
