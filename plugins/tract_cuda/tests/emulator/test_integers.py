"""Integers against Python's, which have no end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ptx_texts import Array, elementwise

COUNT = 256
Meaning = Callable[..., int]


def numbers(dtype: str, seed: int) -> Array:
    """Any numbers, and those at which things change."""
    found = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    info = np.iinfo(found)
    some = rng.integers(info.min, info.max, COUNT, dtype=found, endpoint=True)
    edges = [0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1, 31, 32, 33, 63, 64, 65, info.max // 2]
    some[: len(edges)] = edges
    some[20:60] = rng.integers(0, 40, 40)
    return rng.permutation(some)


def expected(meaning: Meaning, dtype: str, *arrays: Array) -> Array:
    """The results, wrapped around."""
    bits = 8 * np.dtype(dtype).itemsize
    values = [meaning(*(int(one) for one in row)) & ((1 << bits) - 1) for row in zip(*arrays, strict=True)]
    return np.array(values, f"u{bits // 8}").view(dtype)


def same(code: str, dtype: str, meaning: Meaning, *arrays: Array) -> None:
    """The instruction means that."""
    np.testing.assert_array_equal(elementwise(code, dtype, *arrays), expected(meaning, dtype, *arrays))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


TWO: dict[str, Meaning] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_two_operands(name: str, kind: str) -> None:
    dtype = kind.replace("s", "i")[0] + str(int(kind[1:]) // 8)
    arrays = numbers(dtype, 0), numbers(dtype, 1)
    same(f"{name}.{kind} $y, $a, $b;", dtype, TWO[name], *arrays)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_quotients_and_rests(kind: str) -> None:
    dtype = kind.replace("s", "i")[0] + str(int(kind[1:]) // 8)
    a, b = numbers(dtype, 2), numbers(dtype, 3)
    b[b == 0] = 7
    same(f"div.{kind} $y, $a, $b;", dtype, _quotient, a, b)
    same(f"rem.{kind} $y, $a, $b;", dtype, lambda x, y: x - _quotient(x, y) * y, a, b)


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_products_of_twice_the_bits(kind: str) -> None:
    dtype, wide = ("u4", "u8") if kind == "u32" else ("i4", "i8")
    a, b, c = numbers(dtype, 4), numbers(dtype, 5), numbers(wide, 6)
    same(f"mul.wide.{kind} $y, $a, $b;", wide, lambda x, y: x * y, a, b)
    same(f"mul.hi.{kind} $y, $a, $b;", dtype, lambda x, y: x * y >> 32, a, b)
    same(f"mad.wide.{kind} $y, $a, $b, $c;", wide, lambda x, y, z: x * y + z, a, b, c)
    d = numbers(dtype, 7)
    same(f"mad.hi.{kind} $y, $a, $b, $c;", dtype, lambda x, y, z: (x * y >> 32) + z, a, b, d)
    same(f"mad.lo.{kind} $y, $a, $b, $c;", dtype, lambda x, y, z: x * y + z, a, b, d)


def test_sums_that_saturate() -> None:
    a, b = numbers("i4", 0), numbers("i4", 1)
    low, high = -(1 << 31), (1 << 31) - 1
    same("add.sat.s32 $y, $a, $b;", "i4", lambda x, y: min(max(x + y, low), high), a, b)
    same("sub.sat.s32 $y, $a, $b;", "i4", lambda x, y: min(max(x - y, low), high), a, b)


def test_sums_of_two_words_with_a_carry() -> None:
    a, b = numbers("u8", 0), numbers("u8", 1)
    code = """mov.b64 {%r1, %r2}, $a;
mov.b64 {%r3, %r4}, $b;
add.cc.u32 %r5, %r1, %r3;
addc.u32 %r6, %r2, %r4;
mov.b64 $y, {%r5, %r6};"""
    same(code, "u8", lambda x, y: x + y, a, b)
    code = code.replace("add.cc", "sub.cc").replace("addc", "subc")
    same(code, "u8", lambda x, y: x - y, a, b)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_signs(kind: str) -> None:
    dtype = f"i{int(kind[1:]) // 8}"
    a = numbers(dtype, 0)
    same(f"neg.{kind} $y, $a;", dtype, lambda x: -x, a)
    same(f"abs.{kind} $y, $a;", dtype, abs, a)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts(bits: int) -> None:
    a, n = numbers(f"u{bits // 8}", 0), numbers("u4", 1)
    same(f"shl.b{bits} $y, $a, $b;", f"u{bits // 8}", lambda x, s: x << s if s < bits else 0, a, n)
    same(f"shr.u{bits} $y, $a, $b;", f"u{bits // 8}", lambda x, s: x >> min(s, bits), a, n)
    signed = a.view(f"i{bits // 8}")
    same(f"shr.s{bits} $y, $a, $b;", f"i{bits // 8}", lambda x, s: x >> min(s, bits), signed, n)


def test_shifts_of_two_words() -> None:
    a, b, n = numbers("u4", 0), numbers("u4", 1), numbers("u4", 2)
    same("shf.l.wrap.b32 $y, $a, $b, $c;", "u4", lambda x, y, s: ((y << 32 | x) << (s & 31)) >> 32, a, b, n)
    same("shf.r.wrap.b32 $y, $a, $b, $c;", "u4", lambda x, y, s: (y << 32 | x) >> (s & 31), a, b, n)
    same("shf.l.clamp.b32 $y, $a, $b, $c;", "u4", lambda x, y, s: ((y << 32 | x) << min(s, 32)) >> 32, a, b, n)
    same("shf.r.clamp.b32 $y, $a, $b, $c;", "u4", lambda x, y, s: (y << 32 | x) >> min(s, 32), a, b, n)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_fields(kind: str) -> None:
    dtype, bits = kind.replace("s", "i")[0] + str(int(kind[1:]) // 8), int(kind[1:])
    rng = np.random.default_rng(0)
    a = numbers(dtype, 0)
    begin, length = (rng.integers(0, 80, COUNT).astype("u4") for _ in range(2))

    def cut(x: int, at: int, count: int) -> int:
        if count == 0:
            return 0
        top = min(at + count - 1, bits - 1)
        value = (x >> at) & ((1 << count) - 1) if at < bits else 0
        negative = (kind[0] == "s" and (x >> top) & 1 and x < 0) or (kind[0] == "s" and (x >> top) & 1)
        kept = max(min(count, bits - at), 0)
        value &= (1 << kept) - 1
        return value | (-1 << kept) if negative else value

    same(f"bfe.{kind} $y, $a, $b, $c;", dtype, cut, a, begin, length)


@pytest.mark.parametrize("bits", [32, 64])
def test_fields_put(bits: int) -> None:
    rng = np.random.default_rng(1)
    a, b = numbers(f"u{bits // 8}", 0), numbers(f"u{bits // 8}", 1)
    begin, length = (rng.integers(0, 70, COUNT).astype("u4") for _ in range(2))

    def put(field: int, base: int, at: int, count: int) -> int:
        mask = ((1 << count) - 1) << at & ((1 << bits) - 1)
        return (field << at & mask) | (base & ~mask)

    same(f"bfi.b{bits} $y, $a, $b, $c, $d;", f"u{bits // 8}", put, a, b, begin, length)


@pytest.mark.parametrize("bits", [32, 64])
def test_counts_of_bits(bits: int) -> None:
    a = numbers(f"u{bits // 8}", 0)
    same(f"popc.b{bits} $y, $a;", "u4", lambda x: bin(x).count("1"), a)
    same(f"clz.b{bits} $y, $a;", "u4", lambda x: bits - x.bit_length(), a)
    same(f"brev.b{bits} $y, $a;", f"u{bits // 8}", lambda x: int(f"{x:0{bits}b}"[::-1], 2), a)
    same(f"bfind.u{bits} $y, $a;", "u4", lambda x: x.bit_length() - 1, a)
    signed = a.view(f"i{bits // 8}")
    same(f"bfind.s{bits} $y, $a;", "u4", lambda x: (x if x >= 0 else ~x).bit_length() - 1, signed)
    shift = f"bfind.shiftamt.u{bits} $y, $a;"
    same(shift, "u4", lambda x: bits - x.bit_length() if x else -1, a)


@pytest.mark.parametrize("table", [0x00, 0x96, 0xE8, 0xCA, 0x1B, 0xFF])
def test_any_function_of_three_bits(table: int) -> None:
    a, b, c = (numbers("u4", seed) for seed in range(3))

    def meaning(x: int, y: int, z: int) -> int:
        found = 0
        for bit in range(32):
            number = (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1)
            found |= (table >> number & 1) << bit
        return found

    same(f"lop3.b32 $y, $a, $b, $c, {table};", "u4", meaning, a, b, c)


def test_bytes_picked() -> None:
    a, b, s = (numbers("u4", seed) for seed in range(3))

    def meaning(x: int, y: int, selection: int) -> int:
        pool = (y << 32 | x).to_bytes(8, "little")
        found = bytearray()
        for place in range(4):
            nibble = selection >> 4 * place & 15
            byte = pool[nibble & 7]
            found.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
        return int.from_bytes(found, "little")

    same("prmt.b32 $y, $a, $b, $c;", "u4", meaning, a, b, s)
    same("prmt.b32.rc8 $y, $a, $b, $c;", "u4", lambda x, _, n: (x >> 8 * (n & 3) & 255) * 0x01010101, a, b, s)


@pytest.mark.parametrize("left", ["u32", "s32"])
@pytest.mark.parametrize("right", ["u32", "s32"])
def test_dots_of_bytes(left: str, right: str) -> None:
    a, b, c = numbers("u4", 0), numbers("u4", 1), numbers("i4", 2)

    def of(x: int, kind: str) -> list[int]:
        return np.frombuffer(x.to_bytes(4, "little"), "u1" if kind == "u32" else "i1").tolist()

    def meaning(x: int, y: int, z: int) -> int:
        return z + sum(p * q for p, q in zip(of(x, left), of(y, right), strict=True))

    same(f"dp4a.{left}.{right} $y, $a, $b, $c;", "i4", meaning, a, b, c)


def test_halves_of_words() -> None:
    a, b = numbers("u4", 0), numbers("u4", 1)
    for name, one in (("add", np.add), ("min", np.minimum), ("max", np.maximum)):
        found = elementwise(f"{name}.s16x2 $y, $a, $b;", "u4", a, b)
        np.testing.assert_array_equal(found.view("i2"), one(a.view("i2"), b.view("i2")))


def test_the_rest_of_small_ones() -> None:
    a, b, c = (numbers("u4", seed) for seed in range(3))
    same("sad.u32 $y, $a, $b, $c;", "u4", lambda x, y, z: abs(x - y) + z, a, b, c)
    same("not.b32 $y, $a;", "u4", lambda x: ~x, a)
    same("cnot.b32 $y, $a;", "u4", lambda x: int(x == 0), a)
    same("mul24.lo.u32 $y, $a, $b;", "u4", lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF), a, b)
