"""Conversions against NumPy, and against fractions where those round otherwise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ptx_texts import Array, elementwise
from test_floats import COUNT, decoded, numbers, rounded

WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def halfway() -> Array:
    """Floats around whole numbers, and large ones."""
    rng = np.random.default_rng(0)
    return np.concatenate([np.arange(-20, 20) / 4, rng.standard_normal(100) * 1000, [1e10, -1e10, 3e38]]).astype("f4")


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("kind", ["s8", "u8", "s16", "u16", "s32", "u32", "s64"])
def test_floats_become_integers(mode: str, kind: str) -> None:
    a = halfway()
    dtype = np.dtype(kind.replace("s", "i")[0] + str(int(kind[1:]) // 8))
    found = elementwise(
        f"cvt.{mode}.{kind}.f32 $y, $a;", "i8" if kind == "s64" else "i4" if kind[0] == "s" else "u4", a
    )
    info = np.iinfo(dtype)
    wanted = [min(max(int(one), info.min), info.max) for one in WHOLE[mode](a.astype("f8"))]
    np.testing.assert_array_equal(found.astype(object), np.array(wanted, object))


def test_what_is_no_number_becomes_zero() -> None:
    found = elementwise("cvt.rzi.s32.f32 $y, $a;", "i4", np.array([np.nan, np.inf, -np.inf], "f4"))
    np.testing.assert_array_equal(found, [0, 2**31 - 1, -(2**31)])


@pytest.mark.parametrize("mode", WHOLE)
def test_floats_become_whole(mode: str) -> None:
    a = halfway()
    np.testing.assert_array_equal(elementwise(f"cvt.{mode}.f32.f32 $y, $a;", "f4", a), WHOLE[mode](a))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_integers_become_floats(mode: str) -> None:
    a = np.random.default_rng(0).integers(-(2**31), 2**31, 300).astype("i4")
    found = elementwise(f"cvt.{mode}.f32.s32 $y, $a;", "f4", a)
    wanted = [rounded(Fraction(int(one)), "f32", mode) for one in a]
    np.testing.assert_array_equal(found.astype("f8"), np.array(wanted))


def test_large_integers_become_floats() -> None:
    a = np.random.default_rng(0).integers(0, 2**64, 300, dtype="u8")
    np.testing.assert_array_equal(elementwise("cvt.rn.f32.u64 $y, $a;", "f4", a), a.astype("f4"))
    small = np.arange(-3000, 3000, 17).astype("i4")
    found = elementwise("cvt.rn.f16.s32 $y, $a;", "f2", small)
    np.testing.assert_array_equal(found, small.astype("f2"))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_floats_become_halves(kind: str, mode: str) -> None:
    a = np.concatenate([numbers("f32", 0).view("f4"), np.array([1e-7, -3e-8, 1e5, -1e6, 65519, 65520, 6e-5], "f4")])
    found = decoded(elementwise(f"cvt.{mode}.{kind}.f32 $y, $a;", "u2", a), kind)
    wanted = [rounded(Fraction(float(one)), kind, mode) for one in a]
    np.testing.assert_array_equal(found, np.array(wanted))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_doubles_become_narrow(mode: str) -> None:
    a = np.random.default_rng(0).standard_normal(COUNT) * 3
    found = elementwise(f"cvt.{mode}.f32.f64 $y, $a;", "f4", a)
    wanted = [rounded(Fraction(one), "f32", mode) for one in a.tolist()]
    np.testing.assert_array_equal(found.astype("f8"), np.array(wanted))
    if mode == "rn":
        halves = elementwise("cvt.rn.f16.f64 $y, $a;", "f2", a)
        wanted = [rounded(Fraction(one), "f16", mode) for one in a.tolist()]
        np.testing.assert_array_equal(halves.astype("f8"), np.array(wanted))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_become_floats_and_back_in_pairs(kind: str) -> None:
    a, b = numbers(kind, 0), numbers(kind, 1)
    np.testing.assert_array_equal(elementwise(f"cvt.f32.{kind} $y, $a;", "f4", a).astype("f8"), decoded(a, kind))
    x, y = (decoded(one, kind).astype("f4") for one in (a, b))
    pairs = elementwise(f"cvt.rn.{kind}x2.f32 $y, $a, $b;", "u4", x, y).view("u2").reshape(-1, 2)
    np.testing.assert_array_equal(pairs[:, 1], a)
    np.testing.assert_array_equal(pairs[:, 0], b)


def test_tf32_has_ten_digits() -> None:
    a = numbers("f32", 0).view("f4")
    found = elementwise("cvt.rna.tf32.f32 $y, $a;", "f4", a)
    scaled = np.abs(a.astype("f8")) / np.exp2(np.floor(np.log2(np.abs(a.astype("f8")))) - 10)
    wanted = np.sign(a) * np.floor(scaled + 0.5) * np.exp2(np.floor(np.log2(np.abs(a.astype("f8")))) - 10)
    np.testing.assert_array_equal(found.astype("f8"), wanted)


def test_integers_of_other_widths() -> None:
    a = np.array([-1, 5, 200, -129, 70000], "i4")
    np.testing.assert_array_equal(elementwise("cvt.s32.s8 $y, $a;", "i4", a), a.astype("i1"))
    np.testing.assert_array_equal(elementwise("cvt.u32.u8 $y, $a;", "u4", a), a.astype("u1"))
    np.testing.assert_array_equal(elementwise("cvt.s64.s32 $y, $a;", "i8", a), a)
    np.testing.assert_array_equal(elementwise("cvt.sat.s8.s32 $y, $a;", "i4", a), np.clip(a, -128, 127))
    packed = elementwise("cvt.pack.sat.s8.s32.b32 $y, $a, $b, 0;", "u4", a, a + 1)
    wanted = np.stack([np.clip(a + 1, -128, 127), np.clip(a, -128, 127)], 1).astype("i1")
    np.testing.assert_array_equal(packed.view("i1").reshape(-1, 4)[:, :2], wanted)
