"""Powers, remainders and shifts, against NumPy and mpmath, and of integers against what the core says that they are."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from tract_llvm.elements.binary import shift_left, shift_right
from tract_llvm.functions.power import constant_power, integer_power, power
from tract_llvm.functions.remainder import floor_remainder, remainder
from ulps import in_parts, numbers, ulps, with_many_digits

from tract_core.ops.binary import FloorRem, Pow, Rem, ShiftLeft, ShiftRight, reference
from tract_core.ops.elementwise import power as power_of_core

ENDS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, 1e-30, np.inf, -np.inf, np.nan, 1.5, 7.0]
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers all over the type, with each other; those whose powers are numbers; all ends with each other."""
    rng = np.random.default_rng(1)
    all_over = numbers(dtype, 7)[: 1 << 15]
    bases = np.exp(rng.uniform(-60, 60, 1 << 14)).astype(dtype)
    near_one = (1 + rng.uniform(-1, 1, 1 << 14) * 2.0 ** -rng.integers(1, 22, 1 << 14)).astype(dtype)
    largest = np.log(np.finfo(dtype).max) * rng.uniform(-1.1, 1.1, 1 << 14)
    ends = np.array([*ENDS, float(2**23 + 1), 2.0**22 + 0.5, -(2.0**22) - 0.5, 2.0**24], dtype)
    with np.errstate(all="ignore"):
        exponents = [rng.permutation(all_over), (largest / np.log(bases)), (largest / np.log(near_one))]
        b = np.concatenate([*exponents, np.tile(ends, ends.size)]).astype(dtype)
    a = np.concatenate([all_over, bases, near_one, np.repeat(ends, ends.size)])
    rest = -a.size % 64
    return np.append(a, np.ones(rest, dtype)), np.append(b, np.ones(rest, dtype))


@cache
def powers(dtype: str) -> tuple[np.ndarray, ...]:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        if dtype == "f4":
            return a, b, *in_parts(power_of_core(a.astype("f8"), b.astype("f8")), "f4")
        a, b = np.append(a[::5], a[-512:]), np.append(b[::5], b[-512:])
        a, b = a[: a.size // 64 * 64], b[: b.size // 64 * 64]
        high = power_of_core(a, b)
        low = np.zeros_like(a)
        usual = np.isfinite(a) & np.isfinite(b) & (a > 0) & (high > 0) & np.isfinite(high)
        high[usual], low[usual] = with_many_digits(mpmath.power, a[usual], b[usual])
    return a, b, high, low


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_power_is_as_near_as_it_says(elements, dtype, lanes) -> None:
    a, b, wanted, missing = powers(dtype)
    off = ulps(elements(power, (a, b), dtype, lanes), wanted, missing)
    worst, bound = off.argmax(), 0.6 if dtype == "f4" else 1.1
    assert off[worst] <= bound, f"{a[worst]!r} ** {b[worst]!r} is {off[worst]} units off {wanted[worst]!r}"


@pytest.mark.parametrize("exponent", [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 1.5, 5.0, np.inf, np.nan])
def test_a_power_that_is_known_beforehand_is_as_near(elements, exponent) -> None:
    x = numbers(np.float32)
    with np.errstate(all="ignore"):
        wanted, missing = in_parts(power_of_core(x.astype("f8"), np.float64(exponent)), "f4")
    off = ulps(elements(lambda value: constant_power(value, exponent), x, "f4", 16), wanted, missing)
    worst = off.argmax()
    assert off[worst] <= 2, f"{x[worst]!r} ** {exponent} is {off[worst]} units off {wanted[worst]!r}"


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("op", "emit"), [(Rem(), remainder), (FloorRem(), floor_remainder)], ids=["rem", "floor"])
def test_remainders_of_floats_are_exact(elements, op, emit, dtype, lanes) -> None:
    a, b = pairs(dtype)
    b = np.copysign(b, np.where(np.arange(a.size) % 3, b, -b))
    with np.errstate(all="ignore"):
        wanted = reference(op, a, b)
    found = elements(emit, (a, b), dtype, lanes)
    np.testing.assert_array_equal(found, wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    ("op", "emit"),
    [
        (Rem(), remainder),
        (FloorRem(), floor_remainder),
        (Pow(), integer_power),
        (ShiftLeft(), lambda a, b: shift_left(ShiftLeft(), a, b)),
        (ShiftRight(), lambda a, b: shift_right(ShiftRight(), a, b)),
    ],
    ids=["rem", "floor", "pow", "left", "right"],
)
def test_integers_give_what_the_core_gives(elements, op, emit, dtype, lanes) -> None:
    ends, rng = np.iinfo(dtype), np.random.default_rng(2)
    some = [ends.min, ends.min + 1, ends.max, 0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 31, 32, 63, 64, ends.max // 2]
    some += [-1, -2, -3, -8, -64] if ends.min < 0 else []
    some = np.array([one for one in some if one <= ends.max], dtype)
    a = np.append(np.repeat(some, some.size), rng.integers(ends.min, ends.max, 4096, dtype, endpoint=True))
    b = np.append(np.tile(some, some.size), rng.integers(ends.min, ends.max, 4096, dtype, endpoint=True))
    a, b = a[-(a.size // 64 * 64) :], b[-(b.size // 64 * 64) :]
    with np.errstate(all="ignore"):
        wanted = reference(op, a, b)
    np.testing.assert_array_equal(elements(emit, (a, b), dtype, lanes), wanted)
