"""What is made of a file's bytes: it counts while it is there, and is made once."""

from __future__ import annotations

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.errors import LimitExceeded
from tract_core.frontend.unfolded import Unfolded


def made_of(unfolded, part, size=60):
    return unfolded.shared(part, size, lambda: np.zeros(size, np.uint8))


def test_what_is_there_at_one_time_is_bounded():
    unfolded = Unfolded(lambda: 100)
    one = made_of(unfolded, "a")
    with pytest.raises(LimitExceeded, match="take 120 bytes when they are unfolded, 100 are allowed"):
        made_of(unfolded, "b")
    assert made_of(unfolded, "b", 40).size == 40
    del one
    assert made_of(unfolded, "b").size == 60


def test_what_is_read_again_is_made_once():
    unfolded = Unfolded(lambda: 100)
    one = made_of(unfolded, "a")
    assert made_of(unfolded, "a") is one
    assert not one.flags.writeable


def test_a_view_holds_the_memory_of_what_was_made():
    """A constant holds a view. It counts, and is what the next reader gets, while that is there."""
    unfolded = Unfolded(lambda: 100)
    held = Constant(unfolded.shared("a", 60, lambda: np.zeros(64, np.uint8)[:60].reshape(6, 10)))
    with pytest.raises(LimitExceeded):
        made_of(unfolded, "b")
    assert np.shares_memory(made_of(unfolded, "a"), held.array)


def test_what_cannot_be_made_takes_nothing():
    unfolded = Unfolded(lambda: 100)

    def fails():
        raise MemoryError

    for _ in range(3):
        with pytest.raises(MemoryError):
            unfolded.counted(60, fails)
        with pytest.raises(MemoryError):
            unfolded.kept("a", 60, fails)
    assert unfolded.kept("a", 60, lambda: (1, 2)) is unfolded.kept("a", 60, lambda: (3,))
    with pytest.raises(LimitExceeded):
        unfolded.counted(60, lambda: np.zeros(60, np.uint8))
