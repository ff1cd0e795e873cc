"""Arrays that stay: where they lie, and for how long."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from tract_cpu.aligned import ALIGNMENT, BLOCK, LARGE, lasting
from tract_cpu.native.objects import address_of


@pytest.mark.parametrize("size", [0, 1, 63, LARGE - 1, LARGE, LARGE + 1, BLOCK + 4])
def test_arrays_that_last_are_zeros_of_their_own_that_begin_a_line(size: int) -> None:
    arrays = [lasting((2, size), np.uint8) for _ in range(3)]
    for number, array in enumerate(arrays):
        assert array.shape == (2, size)
        assert array.dtype == np.uint8
        assert not array.any()
        assert not size or address_of(array) % ALIGNMENT == 0
        array[...] = number + 1
    assert all((array == number + 1).all() for number, array in enumerate(arrays))


def test_numbers_that_last_have_their_type() -> None:
    array = lasting((3, LARGE), np.float32)
    array[...] = np.arange(LARGE)
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array[1], np.arange(LARGE))


def test_a_block_goes_with_its_last_array() -> None:
    first, second = (lasting((LARGE,), np.uint8) for _ in range(2))
    blocks = {weakref.ref(memoryview(one.base).obj) for one in (first, second) if not isinstance(one.base, np.ndarray)}
    del first
    gc.collect()
    assert all(block() is not None for block in blocks)
    del second
    gc.collect()
    assert all(block() is None for block in blocks)
