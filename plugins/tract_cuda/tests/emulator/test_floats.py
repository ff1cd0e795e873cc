"""Floats against fractions, which are exact, rounded as the instruction says."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from ptx_texts import Array, elementwise

COUNT = 512
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127)}
"""Of each type: digits, the least and the largest exponent."""
CARRIER = {"f16": "u2", "bf16": "u2", "f32": "u4"}


def decoded(array: Array, kind: str) -> Array:
    """The numbers that bits stand for, as f64."""
    if kind == "f16":
        return array.view("f2").astype("f8")
    if kind == "f32":
        return array.view("f4").astype("f8")
    return (array.astype("u4") << 16).view("f4").astype("f8")


def numbers(kind: str, seed: int, spread: float = 3.0) -> Array:
    """Bits of any finite numbers, small ones too."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(COUNT) * np.exp2(rng.integers(-9, 10, COUNT) * spread / 3)
    if kind == "f16":
        return values.astype("f2").view("u2")
    bits = values.astype("f4").view("u4")
    return bits if kind == "f32" else (bits >> 16).astype("u2")


def rounded(value: Fraction, kind: str, mode: str) -> float:
    """A fraction in a type, rounded."""
    digits, least, most = FORMATS[kind]
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, least) - digits + 1)
    below = value / unit
    floor, ceil = math.floor(below), math.ceil(below)
    chosen = {
        "rn": round(below),  # halves to even
        "rz": floor if value > 0 else ceil,
        "rm": floor,
        "rp": ceil,
    }[mode]
    found = chosen * unit
    limit = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** most
    if abs(found) > limit:
        inward = mode == "rz" or (mode == "rm" and value > 0) or (mode == "rp" and value < 0)
        return float(limit) * (1 if value > 0 else -1) if inward else math.inf * (1 if value > 0 else -1)
    return float(found)


OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
}


def check(name: str, kind: str, mode: str, *arrays: Array) -> None:
    """The instruction rounds as fractions do."""
    operands = ", ".join(f"${one}" for one, _ in zip("abc", arrays, strict=False))
    found = decoded(elementwise(f"{name}.{mode}.{kind} $y, {operands};", CARRIER[kind], *arrays), kind)
    values = zip(*(decoded(one, kind) for one in arrays), strict=True)
    wanted = [rounded(OPERATIONS[name](*map(Fraction, row)), kind, mode) for row in values]
    np.testing.assert_array_equal(found, np.array(wanted))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_rounding_of_f32(name: str, mode: str) -> None:
    count = 3 if name == "fma" else 2
    check(name, "f32", mode, *(numbers("f32", seed) for seed in range(count)))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_halves(name: str, kind: str) -> None:
    count = 3 if name == "fma" else 2
    check(name, kind, "rn", *(numbers(kind, seed, 1.0) for seed in range(count)))


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_sums_far_apart(mode: str) -> None:
    """What is below all digits still decides."""
    a, b = numbers("f32", 0, 0.1), (numbers("f32", 1).view("f4") * np.float32(2.0**-80)).view("u4")
    check("add", "f32", mode, a, b)
    check("fma", "f32", mode, a, numbers("f32", 2, 0.1), b)


def test_products_of_halves_far_from_the_sum() -> None:
    """Two roundings would give another number."""
    a = np.full(COUNT, 0x3C01, "u2")  # 1 + 2**-10
    b = np.full(COUNT, 0x3C01, "u2")
    rng = np.random.default_rng(0)
    c = (np.exp2(rng.integers(-14, 14, COUNT)) * rng.choice([-1, 1], COUNT)).astype("f2").view("u2")
    check("fma", "f16", "rn", a, b, c)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_roots(mode: str) -> None:
    a = numbers("f32", 0) & 0x7FFFFFFF
    found = elementwise(f"sqrt.{mode}.f32 $y, $a;", "f4", a)
    for x, y in zip(a.view("f4"), found, strict=True):
        exact, one = Fraction(float(x)), Fraction(float(y))
        below = Fraction(float(np.nextafter(y, np.float32(-np.inf))))
        above = Fraction(float(np.nextafter(y, np.float32(np.inf))))
        fits = {
            "rn": ((one + below) / 2) ** 2 <= exact <= ((one + above) / 2) ** 2,
            "rz": one**2 <= exact < above**2,
            "rm": one**2 <= exact < above**2,
            "rp": below**2 < exact <= one**2,
        }[mode]
        assert fits, (x, y)


def test_reciprocals() -> None:
    a = numbers("f32", 0)
    found = elementwise("rcp.rn.f32 $y, $a;", "f4", a)
    np.testing.assert_array_equal(found, np.float32(1) / a.view("f4"))


def test_doubles() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, COUNT))
    for name, sign in (("add", a + b), ("sub", a - b), ("mul", a * b), ("div", a / b)):
        np.testing.assert_array_equal(elementwise(f"{name}.rn.f64 $y, $a, $b;", "f8", a, b), sign)
    exact = [float(Fraction(x) * Fraction(y) + Fraction(x)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(elementwise("fma.rn.f64 $y, $a, $b, $a;", "f8", a, b), np.array(exact))


def test_doubles_rounded_down() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, COUNT))
    for name, exact in (("add", lambda x, y: x + y), ("mul", lambda x, y: x * y), ("div", lambda x, y: x / y)):
        found = elementwise(f"{name}.rm.f64 $y, $a, $b;", "f8", a, b)
        for x, y, z in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
            value = exact(Fraction(x), Fraction(y))
            assert Fraction(z) <= value < Fraction(math.nextafter(z, math.inf))


SMALL = np.array([1e-40, -1e-40, 2e-38, 0.0, -0.0, 1.0], "f4")


def test_small_numbers_are_flushed() -> None:
    kept = elementwise("add.rn.f32 $y, $a, $b;", "f4", SMALL, np.zeros(6, "f4"))
    np.testing.assert_array_equal(kept, SMALL)
    flushed = elementwise("add.rn.ftz.f32 $y, $a, $b;", "f4", SMALL, np.zeros(6, "f4"))
    np.testing.assert_array_equal(flushed, np.array([0, 0, 2e-38, 0, 0, 1], "f4"))
    factors = np.array([1e-20, 2e-19], "f4")
    product = elementwise("mul.rn.ftz.f32 $y, $a, $a;", "f4", factors)
    np.testing.assert_array_equal(product, factors * factors * np.array([0, 1], "f4"))


def test_results_between_zero_and_one() -> None:
    a = np.array([-3.0, 0.25, 7.0, np.nan, -0.0], "f4")
    found = elementwise("add.rn.sat.f32 $y, $a, $b;", "f4", a, np.zeros(5, "f4"))
    np.testing.assert_array_equal(found, np.array([0, 0.25, 1, 0, 0], "f4"))


ODD = np.array([np.nan, 1.0, np.nan, 0.0, -0.0, np.inf, -2.0], "f4")
OTHER = np.array([1.0, np.nan, np.nan, -0.0, 0.0, 1.0, -3.0], "f4")


def test_extremes_of_what_is_no_number() -> None:
    low = elementwise("min.f32 $y, $a, $b;", "f4", ODD, OTHER)
    np.testing.assert_array_equal(low, np.array([1, 1, np.nan, -0.0, -0.0, 1, -3], "f4"))
    assert np.signbit(low[3:5]).all()
    high = elementwise("max.f32 $y, $a, $b;", "f4", ODD, OTHER)
    np.testing.assert_array_equal(high, np.array([1, 1, np.nan, 0, 0, np.inf, -2], "f4"))
    assert not np.signbit(high[3:5]).any()
    spread = elementwise("max.NaN.f32 $y, $a, $b;", "f4", ODD, OTHER)
    np.testing.assert_array_equal(np.isnan(spread), [True, True, True, False, False, False, False])


def test_signs() -> None:
    a = np.array([1.0, -2.0, np.nan, -0.0], "f4")
    np.testing.assert_array_equal(elementwise("neg.f32 $y, $a;", "u4", a), a.view("u4") ^ 0x80000000)
    np.testing.assert_array_equal(elementwise("abs.f32 $y, $a;", "u4", a), a.view("u4") & 0x7FFFFFFF)
    found = elementwise("copysign.f32 $y, $a, $b;", "f4", a, np.full(4, 3.0, "f4"))
    np.testing.assert_array_equal(found, np.copysign(np.full(4, 3.0, "f4"), a))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pairs_of_halves(kind: str) -> None:
    parts = [numbers(kind, seed, 1.0) for seed in range(3)]
    words = [one.view("u4") for one in parts]
    found = elementwise(f"fma.rn.{kind}x2 $y, $a, $b, $c;", "u4", *words)
    single = elementwise(f"fma.rn.{kind} $y, $a, $b, $c;", "u2", *parts)
    np.testing.assert_array_equal(found.view("u2"), single)
    found = elementwise(f"max.{kind}x2 $y, $a, $b;", "u4", *words[:2])
    wanted = np.maximum(*(decoded(one, kind) for one in parts[:2]))
    np.testing.assert_array_equal(decoded(found.view("u2"), kind), wanted)


COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b)),
    "lt": lambda a, b: a < b,
    "geu": lambda a, b: ~(a < b),
    "equ": lambda a, b: (a == b) | np.isnan(a) | np.isnan(b),
    "neu": lambda a, b: a != b,
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str) -> None:
    code = f"setp.{name}.f32 %p1|%p2, $a, $b; selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 2, 0, %p2; or.b32 $y, %r1, %r2;"
    found = elementwise(code, "u4", ODD, OTHER)
    np.testing.assert_array_equal(found, np.where(COMPARISONS[name](ODD, OTHER), 1, 2))


def test_comparisons_that_join() -> None:
    code = "setp.gt.f32 %p1, $a, 0f00000000; setp.lt.and.f32 %p2, $b, 0f40000000, %p1; selp.u32 $y, 1, 0, %p2;"
    a, b = np.array([1, 1, -1], "f4"), np.array([1, 3, 1], "f4")
    np.testing.assert_array_equal(elementwise(code, "u4", a, b), [1, 0, 0])
    unsigned = elementwise(
        "setp.lo.u32 %p1, $a, $b; selp.u32 $y, 1, 0, %p1;", "u4", np.array([1, 2**31], "u4"), np.array([2**31, 1], "u4")
    )
    np.testing.assert_array_equal(unsigned, [1, 0])
