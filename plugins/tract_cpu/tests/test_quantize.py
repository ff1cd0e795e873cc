"""Operators of quantised networks, against what the core says that they are."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.kernels import quantize

from tract_core.ops.quantize import OffsetI8asU8, OffsetU8asI8, QScale, Scale, Ties, offset, q_scale
from tract_core.ops.quantize import scale as scaled

BYTES = np.arange(256, dtype=np.uint8)


SCALES = [QScale(2**30, shift, ties) for ties in Ties for shift in (0, 3)]
SCALES += [
    QScale(multiplier, shift) for multiplier in (1, 1 - 2**31, 1518500250) for shift in (-70, -31, -30, 5, 31, 32)
]


@pytest.mark.parametrize("op", SCALES, ids=str)
def test_fixed_point_products_round_as_they_say(elements, op) -> None:
    some = [
        0,
        1,
        -1,
        2,
        -2,
        3,
        5,
        -5,
        7,
        1 << 10,
        3 << 20,
        (1 << 31) - 1,
        -(1 << 31),
        1 - (1 << 31),
        1 << 30,
        -(1 << 30),
    ]
    x = np.array(some, np.int32)
    found = elements(lambda value: quantize.q_scale(op, value), x, np.int32, 8)
    np.testing.assert_array_equal(found, q_scale(op, x))


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4"])
def test_real_factors_round_to_even_and_saturate(elements, dtype, lanes) -> None:
    ends = np.iinfo(dtype)
    integers = np.array([0, 1, 2, 3, 5, 7, ends.max, ends.min], dtype)
    factors = np.array([0.5, -0.5, 1.5, 0.1, 1e9, -1e9, np.inf, np.nan], np.float32)
    factor, x = np.repeat(factors, 8), np.tile(integers, 8)
    found = elements(lambda a, b: quantize.scale(Scale(), a, b), (factor, x), dtype, lanes)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, scaled(Scale(), factor, x))


def test_offsets_flip_the_top_bit(elements) -> None:
    found = elements(lambda x: quantize.offset_to_i8(OffsetU8asI8(), x), BYTES, np.int8, 16)
    np.testing.assert_array_equal(found, offset(OffsetU8asI8(), BYTES))
    back = elements(lambda x: quantize.offset_to_u8(OffsetI8asU8(), x), found, np.uint8, 16)
    np.testing.assert_array_equal(back, BYTES)
