"""Conversions between element types, against NumPy and ml-dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

TYPES = ["bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", ml_dtypes.bfloat16]


def numbers(dtype: np.dtype) -> np.ndarray:
    """Numbers at the ends of a type, around 0, and in between; 64 of them."""
    rng = np.random.default_rng(0)
    if dtype == np.bool_:
        return rng.random(64) < 0.5
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        found = rng.integers(ends.min, ends.max, 64, dtype, endpoint=True)
        found[:6] = [ends.min, ends.max, 0, 1, ends.min + 1, ends.max - 1]
        return found
    with np.errstate(over="ignore"):
        return floats(rng, dtype)


def floats(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    found = (rng.standard_normal(64) * 10.0 ** rng.integers(-9, 9, 64)).astype(dtype)
    found[:10] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.0, 65520.0, 1e-8, 3e38, 0.1]
    found[10:14] = [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 1 + 2**-11]
    return found


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("to", TYPES, ids=lambda one: np.dtype(one).name)
@pytest.mark.parametrize("source", TYPES, ids=lambda one: np.dtype(one).name)
def test_conversions_are_those_of_numpy(elements, source, to, lanes) -> None:
    source, to = np.dtype(source), np.dtype(to)
    if elements.isa.name == "sse2" and "float16" in (source.name, to.name):
        pytest.skip("the baseline has no instruction for half floats")
    x = numbers(source)
    with np.errstate(all="ignore"):
        wanted = expected(x, to)
    found = elements(lambda value: value, x, to, lanes)
    assert np.array_equal(is_nan(found), is_nan(wanted))
    bits = f"u{to.itemsize}"
    np.testing.assert_array_equal(found.view(bits)[~is_nan(wanted)], wanted.view(bits)[~is_nan(wanted)])


def expected(x: np.ndarray, to: np.dtype) -> np.ndarray:
    """What stops at the ends of an integer type is written out; NumPy leaves that to the machine."""
    if (x.dtype.kind == "f" or x.dtype == ml_dtypes.bfloat16) and to.kind in "iu":
        return np.array([cut(float(one), np.iinfo(to)) for one in x], to)
    if to == ml_dtypes.bfloat16 and x.dtype != np.bool_:
        return rounded_to_bf16(x)
    return x.astype(to)


def cut(number: float, ends: np.iinfo) -> int:
    if np.isnan(number):
        return 0
    return min(max(int(number), ends.min), ends.max) if np.isfinite(number) else ends.max if number > 0 else ends.min


def rounded_to_bf16(x: np.ndarray) -> np.ndarray:
    """Rounded once, from the exact number: the nearest of the neighbours of what an f32 gives, halves to even."""
    found = x.astype("f4").astype(ml_dtypes.bfloat16)
    if x.dtype != np.float64:
        return found  # integers become f32 first, by ml-dtypes too
    for index, exact in enumerate(x):
        if np.isfinite(exact) and np.isfinite(float(found[index])):
            bits = int(found[index : index + 1].view("u2")[0])
            codes = np.array([one for one in (bits - 1, bits, bits + 1) if 0 <= one < 1 << 16], np.uint16)
            near = [one for one in codes.view(ml_dtypes.bfloat16) if np.isfinite(float(one))]
            found[index] = min(near, key=lambda one: (abs(float(one) - exact), one.view("u2") & 1))
    return found


def is_nan(x: np.ndarray) -> np.ndarray:
    return np.asarray(x != x)  # noqa: PLR0124 - what this asks
