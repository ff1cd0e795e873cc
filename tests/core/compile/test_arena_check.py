"""What the check of an arena finds, and what it takes for right."""

from __future__ import annotations

from tract_core.compile.arena_check import arena_faults
from tract_core.compile.arena_plan import ArenaPlan
from tract_core.dims import Dim, broadcast, symbol

S, T = symbol("S"), symbol("T")
BOTH = {0: (0, 1), 1: (1, 2)}


def found(offset: Dim, *sizes: Dim, slot: tuple[Dim, ...], values: dict[str, int]) -> list[str]:
    plan = ArenaPlan((0,) * len(sizes), (0, offset), (slot,), (0,))
    return list(arena_faults(plan, sizes, BOTH, 64, iter([values])))


def test_storages_beside_each_other_are_right() -> None:
    assert not found(S * 64, S * 64, S * 64, slot=(S * 128,), values={"S": 3})


def test_storages_that_share_bytes_are_told() -> None:
    (text,) = found(0, S * 64, S * 64, slot=(S * 64,), values={"S": 3})
    assert text == "arena[0] and arena[1] share bytes 0 to 192 of slot 0, and both count at step 1 with S=3"


def test_a_storage_behind_the_end_of_its_slot_is_told() -> None:
    (text,) = found(S * 64, S * 64, S * 64, slot=(S * 64,), values={"S": 3})
    assert text == "arena[1] goes from byte 192 to 384 of slot 0, which ends before with S=3"


def test_sizes_that_are_refused_are_no_fault() -> None:
    """A run with them ends when its memory is sized, before any of it is used."""
    both = broadcast(S, T) * 64
    for size, slot in ((both, (both,)), (S * 64, (both,)), (S * 64, (S * 64, both)), (both, (S * 64,))):
        assert not found(0, size, 0, slot=slot, values={"S": 5, "T": 7})


def test_a_slot_that_ends_early_is_told_with_sizes_that_fit() -> None:
    both = broadcast(S, T) * 64
    (text,) = found(0, both, 0, slot=(S * 64,), values={"S": 1, "T": 7})
    assert text == "arena[0] goes from byte 0 to 448 of slot 0, which ends before with S=1, T=7"
