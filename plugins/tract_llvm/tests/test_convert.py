"""Conversions between element types, against NumPy and ml-dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

TYPES = ["bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", ml_dtypes.bfloat16]
NARROW_FLOATS = [
    getattr(ml_dtypes, name)
    for name in ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
] + [ml_dtypes.float4_e2m1fn]
NARROW_INTEGERS = [ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4]


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


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.itemsize}")


def every(dtype: Any) -> np.ndarray:
    """Every number of a narrow float type."""
    bits = {ml_dtypes.bfloat16: 16, ml_dtypes.float4_e2m1fn: 4}.get(dtype, 8)
    return np.arange(1 << bits, dtype=f"u{np.dtype(dtype).itemsize}").view(dtype)


@pytest.mark.parametrize("to", ["f4", "f8"])
@pytest.mark.parametrize("dtype", NARROW_FLOATS, ids=lambda one: np.dtype(one).name)
def test_narrow_floats_become_wider_ones_exactly(elements, dtype, to) -> None:
    with np.errstate(invalid="ignore"):
        wanted = every(dtype).astype("f4").astype(to)
    found = elements(lambda x: x, every(dtype), to, 16)
    assert np.array_equal(is_nan(found), is_nan(wanted))
    np.testing.assert_array_equal(bits_of(found)[~is_nan(wanted)], bits_of(wanted)[~is_nan(wanted)])


def positive(dtype: Any) -> np.ndarray:
    """Every finite number of a narrow type that is not negative, in order, in f64."""
    found = every(dtype).astype("f4")
    return np.unique(np.abs(found[np.isfinite(found)].astype("f8")))


@pytest.mark.parametrize("dtype", NARROW_FLOATS[1:], ids=lambda one: np.dtype(one).name)
def test_floats_become_the_nearest_narrow_ones(elements, dtype) -> None:
    exact = positive(dtype).astype("f4")
    with np.errstate(all="ignore"):
        exact = np.append(exact, np.array([1.5 * exact[-1], 2 * exact[-1], np.inf], "f4"))
        middles = (exact[1:] + exact[:-1]) / 2
        near = np.concatenate([exact, middles, np.nextafter(middles, 0), np.nextafter(middles, np.float32(np.inf))])
        some = np.random.default_rng(0).integers(0, 1 << 32, 4096, np.uint32).view("f4")
        x = np.concatenate([near, -near, some, np.array([np.nan, -np.nan, 1e-45], "f4")])
        x = np.resize(x, x.size // 16 * 16 + 16)
        wanted = x.astype(dtype)
    np.testing.assert_array_equal(bits_of(elements(lambda value: value, x, dtype, 16)), bits_of(wanted))


@pytest.mark.parametrize("dtype", [one for one in NARROW_FLOATS[1:] if one != ml_dtypes.float8_e8m0fnu])
def test_doubles_are_rounded_once(elements, dtype) -> None:
    """Next to the middle of two neighbours, on either side, nearer than an f32 tells."""
    exact = positive(dtype)
    low, high, middles = exact[:-1], exact[1:], (exact[1:] + exact[:-1]) / 2
    x = np.concatenate([np.nextafter(middles, 0), np.nextafter(middles, np.inf)])
    x, wanted = np.concatenate([x, -x]), np.concatenate([low, high, -low, -high])
    found = elements(lambda value: value, np.resize(x, x.size // 16 * 16 + 16), dtype, 16)[: x.size]
    np.testing.assert_array_equal(found.astype("f8"), wanted)


@pytest.mark.parametrize("other", ["bool", "i8", ml_dtypes.float8_e5m2], ids=str)
@pytest.mark.parametrize("dtype", NARROW_INTEGERS, ids=lambda one: np.dtype(one).name)
def test_narrow_integers_are_the_lowest_bits(elements, dtype, other) -> None:
    """Whatever stands above them in memory does not count, and is 0 in what is written."""
    some = np.arange(256, dtype=np.uint8).view(dtype)
    np.testing.assert_array_equal(elements(lambda x: x, some, other, 16), some.astype(np.int8).astype(other))
    whole = np.arange(256).astype(np.uint8 if other == "bool" else np.int16).astype(other)
    wanted = whole.astype(np.int64).astype(np.int8).astype(dtype)
    np.testing.assert_array_equal(bits_of(elements(lambda x: x, whole, dtype, 16)), bits_of(wanted))


@pytest.mark.parametrize("dtype", NARROW_INTEGERS, ids=lambda one: np.dtype(one).name)
def test_floats_stop_at_the_ends_of_an_i32_before_their_lowest_bits_are_kept(elements, dtype) -> None:
    x = np.array([1.9, -1.9, 100, -9, 3e9, -3e9, np.inf, -np.inf, np.nan, 2**31 - 128, 0.5, -0.0, 7, 8, -8, 1], "f4")
    wanted = np.array([1, -1, 100, -9, -1, 0, -1, 0, 0, 2**31 - 128, 0, 0, 7, 8, -8, 1]).astype(np.int8).astype(dtype)
    np.testing.assert_array_equal(elements(lambda value: value, x, dtype, 16), wanted)
