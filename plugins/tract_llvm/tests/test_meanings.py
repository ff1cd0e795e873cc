"""What is said of instructions, beside the instructions of this machine, and beside numbers that are wide or exact."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CFUNCTYPE, c_int64
from fractions import Fraction
from math import inf, ldexp, nan
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tract_llvm import meanings
from tract_llvm.elements.expressions import rounded
from tract_llvm.functions.rounding import floor, whole
from tract_llvm.isa import ISAS, Dot, Isa, of_this_machine, portable, usable
from tract_llvm.language.byte_tables import looked_up
from tract_llvm.language.function import Function
from tract_llvm.language.tiles import tiles_of
from tract_llvm.language.types import BF16, F16, F32, I32, POINTER, U8, ir_type
from tract_llvm.language.values import Value
from tract_llvm.objects.library import Code, Library
from tract_llvm.objects.origins import key_of
from tract_llvm.testing.elements import ElementRunner

from tract_core.cache.cache import Cache, Key
from tract_core.errors import Unsupported

Array = np.ndarray[Any, Any]

COUNT = 1 << 12

HERE = of_this_machine()
HOSTS = [HERE[0], HERE[-1]] if len(HERE) > 1 else list(HERE)
"""Instructions are written out for what every processor of this type has, and for all that this one has."""
WRITTEN_OUT = [pytest.param(portable(isa, host), id=f"{isa.name} on {host.name}") for isa in ISAS for host in HOSTS]
ALL = [*(pytest.param(isa, id=isa.name) for isa in HERE), *WRITTEN_OUT]

OF_BYTES, OF_BF16 = (next(one for isa in ISAS for one in isa.dots if one.left == name) for name in ("u8", "bf16"))
DOTS = list({one: None for isa in ISAS for one in isa.dots})


def same(found: Array, wanted: Array) -> None:
    """The same bits, or both no number."""
    assert found.dtype == wanted.dtype
    if found.dtype.kind == "f":
        is_nan = np.isnan(wanted)
        np.testing.assert_array_equal(np.isnan(found), is_nan)
        found, wanted = (one[~is_nan].view(f"u{one.itemsize}") for one in (found, wanted))
    np.testing.assert_array_equal(found, wanted)


def integers(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    """Half of them at the ends of the type."""
    ends, rng = np.iinfo(dtype), np.random.default_rng(seed)
    found = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    at_end = rng.random(shape) < 0.5
    found[at_end] = rng.choice(np.array([ends.min, ends.max, ends.min + 1, 0], dtype), at_end.sum())
    return found


def floats(dtype: str, count: int, seed: int, exponents: tuple[int, int] | None = None) -> Array:
    """Any bits, or some with these exponents of two; zeros, subnormal ones, infinities, both kinds of no number."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    kind = np.dtype(f"u{info.bits // 8}")
    found = rng.integers(0, np.iinfo(kind).max, count, kind, endpoint=True).view(dtype)
    if exponents is not None:
        signed = rng.choice(np.array([-1, 1], dtype), count) * (1 + rng.random(count).astype(dtype))
        found = np.ldexp(signed, rng.integers(*exponents, count).astype("i4")).astype(dtype)
    tiny, end = info.smallest_subnormal, info.max
    special = np.array(
        [0, -0.0, tiny, -tiny, info.tiny, -info.tiny, info.tiny - tiny, end, -end, inf, -inf, nan], dtype
    )
    loud = np.array([np.array(inf, dtype).view(kind) + kind.type(1)], kind).view(dtype)
    place = rng.random(count) < 0.25
    found[place] = rng.choice(np.concatenate([special, loud]), place.sum())
    return found


def groups(dot: Dot, which: str, seed: int) -> Array:
    """Groups of factors, as ``int32``."""
    name = getattr(dot, which)
    if name != "bf16":
        found = integers({"u8": "u1", "i8": "i1", "i16": "i2"}[name], (COUNT * dot.group,), seed)
        if dot.limit and which == "right":
            found = found.clip(-dot.limit, dot.limit)
        return found.view("i4")
    parts = [floats("f4", COUNT // 2, seed + place, span) for place, span in enumerate(SPANS)]
    return (np.concatenate(parts).view("u4") >> 16).astype("u2").view("i4")


SPANS = [None, (-4, 4), (-67, -58), (-140, -110)]
"""Of exponents of two: those of the third have products around the least normal number, those of the last none."""


def sums_of(dot: Dot) -> Array:
    if dot.sums == "i32":
        return integers("i4", (COUNT,), 9)
    return np.concatenate(
        [floats("f4", COUNT // 4, 9 + place, span) for place, span in enumerate([*SPANS[:2], *[(-128, -123)] * 2])]
    )


def on_dot(elements: ElementRunner, dot: Dot, left: Array, right: Array, sums: Array) -> Array:
    def emit(left: Value, right: Value, sums: Value) -> Value:
        return sums.function.dots(dot, left, right, sums)

    return elements(emit, (left, right, sums), sums.dtype, elements.isa.lanes(32))


@pytest.mark.parametrize("isa", ALL)
def test_dots_are_what_is_said_of_them(isa: Isa) -> None:
    elements = ElementRunner(isa)
    for one in isa.dots:
        left, right, sums = groups(one, "left", 0), groups(one, "right", 20), sums_of(one)
        wanted = meanings.dots(one, left, right, sums)
        same(on_dot(elements, one, left, right, sums), wanted)
        same(on_dot(elements, one.other_way(), right, left, sums), wanted)


SQUARES = [one for one in ALL if any(dot.square for dot in one.values[0].dots)]


@pytest.mark.parametrize("isa", SQUARES)
def test_squares_are_what_is_said_of_them(isa: Isa) -> None:
    elements = ElementRunner(isa)
    for dot in (one for one in isa.dots if one.square):
        left, right, sums = groups(dot, "left", 0), groups(dot, "right", 20), sums_of(dot)

        def emit(left: Value, right: Value, sums: Value, dot: Dot = dot) -> Value:
            return sums.function.squares(dot, left, right, sums)

        same(elements(emit, (left, right, sums), sums.dtype, isa.lanes(32)), meanings.squares(dot, left, right, sums))
        turned = dot.other_way()
        found = elements(lambda *given, dot=turned: emit(*given, dot), (right, left, sums), sums.dtype, isa.lanes(32))
        same(found, meanings.squares(turned, right, left, sums))


@pytest.mark.parametrize("dot", [one for one in DOTS if one.square], ids=lambda dot: dot.name)
def test_squares_are_two_dots_each_to_the_bit(dot: Dot) -> None:
    left, right, sums = groups(dot, "left", 0), groups(dot, "right", 20), sums_of(dot)
    found = meanings.squares(dot, left, right, sums).reshape(-1, 2, 2)
    rows, columns, wanted = (one.reshape(-1, 2, 2) for one in (left, right, sums))
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        total = wanted[:, row, column]
        for group in (0, 1):
            total = meanings.dots(dot, rows[:, row, group], columns[:, column, group], total)
        same(found[:, row, column], total)


def test_every_instruction_has_a_meaning_and_no_other_has() -> None:
    of_dots = {name for isa in ISAS for dot in (*isa.dots, *isa.tiles) for name in (dot.name, dot.square)}
    of_bytes = {name for isa in ISAS for name in (isa.picks_bytes, isa.lookup and isa.lookup.name)}
    named = {name for isa in ISAS for name in (*of_dots, *of_bytes, *isa.scales, isa.picks) if name}
    assert named == set(meanings.MEANINGS)


@pytest.mark.parametrize("dot", [one for one in DOTS if one.sums == "i32"], ids=lambda dot: dot.name)
def test_dots_of_integers_are_products_of_pythons_integers_that_wrap(dot: Dot) -> None:
    left, right, sums = (one[:500] for one in (groups(dot, "left", 0), groups(dot, "right", 20), sums_of(dot)))
    found = meanings.dots(dot, left, right, sums)
    bits, mask = 32 // dot.group, (1 << 32 // dot.group) - 1
    for row in range(len(sums)):
        exact = int(sums[row])
        for place in range(dot.group):
            a, b = (int(one[row]) >> place * bits & mask for one in (left, right))
            a -= (a >> bits - 1 << bits) * (dot.left[0] == "i")
            b -= (b >> bits - 1 << bits) * (dot.right[0] == "i")
            exact += a * b
        assert int(found[row]) == (exact + 2**31) % 2**32 - 2**31


TILES = list({one: None for isa in ISAS for one in isa.tiles})


def of_tiles(isa: Isa, dot: Dot, tiles: Sequence[Array]) -> Array:
    """What is added to the last of three tiles, [16, 16], and stored behind it in memory."""

    def write(module: Any) -> None:
        f = Function(module, "tiles", isa, [POINTER])
        memory, registers = f.buffer(0, I32), tiles_of(f)
        with registers.configured():
            for number in range(3):
                registers.load(number, memory.at(256 * number), 16)
            registers.add_products(dot, 2, 0, 1)
            registers.store(2, memory.at(256 * 3), 16)
            registers.clear(2)
            registers.store(2, memory.at(256 * 4), 16)
        f.finish()

    held = np.concatenate([*(one.view("i4").ravel() for one in tiles), np.ones(2 * 256, "i4")])
    library = Library(isa, Cache(None))
    CFUNCTYPE(None, c_int64)(library.address(Code(Key("tiles", kept=False), "tiles", write)))(held.ctypes.data)
    assert not held[4 * 256 :].any()
    return held[3 * 256 : 4 * 256].reshape(16, 16).view(tiles[2].dtype)


@pytest.mark.parametrize("dot", TILES, ids=lambda dot: dot.name)
def test_tiles_are_what_is_said_of_them(dot: Dot) -> None:
    for isa in [one for one in ISAS if dot in one.tiles]:
        for host in (portable(isa), *(one for one in HERE if one == isa)):
            for first in (0, 256, 512, 768):
                part = slice(first, first + 256)
                left, right, sums = groups(dot, "left", 0)[part], groups(dot, "right", 20)[part], sums_of(dot)[part]
                tiles = [np.ascontiguousarray(one).reshape(16, 16) for one in (left, right, sums)]
                same(of_tiles(host, dot, tiles), meanings.tiles(dot, *tiles))


@pytest.mark.parametrize("dot", [one for one in TILES if one.sums == "i32"], ids=lambda dot: dot.name)
def test_tiles_of_bytes_are_products_of_pythons_integers_that_wrap(dot: Dot) -> None:
    left, right, sums = (
        one[:256].reshape(16, 16) for one in (groups(dot, "left", 0), groups(dot, "right", 20), sums_of(dot))
    )
    kinds = {"u8": np.uint8, "i8": np.int8}
    a = left.copy().view(kinds[dot.left]).reshape(16, 64).astype(object)
    b = right.copy().view(kinds[dot.right]).reshape(16, 16, 4).transpose(0, 2, 1).reshape(64, 16).astype(object)
    wanted = (a @ b + sums.astype(object) + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(meanings.tiles(dot, left, right, sums), wanted.astype("i4"))


def test_tiles_of_bf16_sum_first_and_second_products_apart() -> None:
    (dot,) = (one for one in TILES if one.sums == "f32")
    left, right = (np.zeros((16, 16), "i4") for _ in range(2))
    left[0, :3] = np.concatenate([bf16(2.0**24, 1), bf16(1, 1), bf16(0, 2.0**-24)])
    right[:3, 0] = np.concatenate([bf16(1, 1), bf16(1, 1), bf16(0, 1)])
    sums = np.zeros((16, 16), "f4")
    sums[0, 0] = 1
    # First ones: 2**24, and 1 is lost; second ones: 1, 2, 2; together 2**24 + 2, and 1 more is a tie.
    assert meanings.tiles(dot, left, right, sums)[0, 0] == 2.0**24 + 4
    assert not meanings.tiles(dot, left, right, sums)[1:].any()


def test_what_both_products_of_the_least_integers_are() -> None:
    """The one sum of two products that does not fit, in which PMADDWD wraps around too."""
    least = np.full(4, -(2**15), "i2").view("i4")
    for dot in (one for one in DOTS if one.left == "i16"):
        np.testing.assert_array_equal(meanings.dots(dot, least, least, np.array([0, -1], "i4")), [-(2**31), 2**31 - 1])


def bf16(*numbers: float) -> Array:
    """Groups of two, as ``int32``."""
    return (np.array(numbers, "f4").view("u4") >> 16).astype("u2").view("i4")


TINY = 2.0**-126


WORKED_OUT: list[tuple[tuple[float, float], tuple[float, float], float, float]] = [
    ((1, 2), (3, 4), 5, 16),
    ((1, 1), (2.0**24, 1), 0, 2.0**24),  # the second product comes first: 1, then 2**24 + 1, a tie
    ((1, 1), (1, 2.0**24), 0, 2.0**24),
    ((-1, 1), (2.0**24, 1), 2.0**24, 0),  # 2**24 + 1 is rounded before 2**24 is taken away
    ((1, -1), (1, 2.0**24), 2.0**24, 1),
    ((0, 1 + 2.0**-7), (0, 1 + 2.0**-7), -1, 2.0**-6 + 2.0**-14),
    ((0, 2.0**-75), (0, -(2.0**-76)), TINY, TINY),  # half a unit of 24 digits below: a tie, to the even one
    ((0, 2.0**-75), (0, -(2.0**-76) * 1.0078125), TINY, 0.0),
    ((-0.0, 2.0**-75), (0, 2.0**-76 * 1.0078125), -TINY, -0.0),
    ((0, 1), (0, TINY / 2), 0, 0.0),
    ((-0.0, 2.0**100), (0, -TINY / 2), -0.0, -0.0),
    ((0, 0), (0, 0), -TINY / 2, 0.0),
    ((-0.0, -0.0), (0, 0), -TINY / 2, -0.0),
    ((1, 2.0**-64), (TINY, 2.0**-64), 0, TINY),  # a sum that is subnormal on the way is zero
    ((0, 2.0**127), (0, 2), 0, inf),
    ((-1, 2.0**127), (inf, 2), 0, nan),
    ((0, 0), (inf, 0), 0, nan),
]
"""Two factors, two others, a sum, and what the instruction for bf16 makes of them, as worked out by hand."""


@pytest.mark.parametrize(("left", "right", "start", "wanted"), WORKED_OUT, ids=str)
def test_dots_of_bf16_add_one_product_after_the_other(left, right, start, wanted) -> None:
    found = meanings.dots(OF_BF16, bf16(*left), bf16(*right), np.array([start], "f4"))
    same(found, np.array([wanted], "f4"))


@pytest.mark.parametrize("isa", [one for one in ALL if OF_BF16 in one.values[0].dots])
def test_instructions_for_bf16_find_what_is_worked_out_by_hand(isa: Isa) -> None:
    rows = WORKED_OUT + WORKED_OUT[: -len(WORKED_OUT) % isa.lanes(32)]
    left, right = (np.concatenate([bf16(*row[place]) for row in rows]) for place in (0, 1))
    start, wanted = (np.array([row[place] for row in rows], "f4") for place in (2, 3))
    same(on_dot(ElementRunner(isa), OF_BF16, left, right, start), wanted)


def test_dots_of_bf16_are_sums_that_are_rounded_once_each() -> None:
    """Of fractions, where nothing is subnormal or too large."""
    left, right = ((floats("f4", 4000, seed, (-12, 12)).view("u4") >> 16).astype("u2") for seed in (0, 1))
    sums = floats("f4", 2000, 2, (-30, 24))
    wide = [(one.astype("u4") << 16).view("f4") for one in (left, right)]
    usual = [np.isfinite(one) & ((np.abs(one) > 1e-8) | (one == 0)) & (np.abs(one) < 1e8) for one in (*wide, sums)]
    kept = np.flatnonzero(usual[0].reshape(-1, 2).all(1) & usual[1].reshape(-1, 2).all(1) & usual[2])
    assert len(kept) > 200
    found = meanings.dots(OF_BF16, left.view("i4"), right.view("i4"), sums)
    for row in kept:
        total = sums[row]
        for place in (2 * row + 1, 2 * row):
            total = nearest(Fraction(float(total)) + Fraction(float(wide[0][place])) * Fraction(float(wide[1][place])))
        assert found[row] == total


def nearest(exact: Fraction) -> np.float32:
    """The nearest f32 to a number, halves to the one whose last digit is even."""
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(-inf)), near, np.nextafter(near, np.float32(inf))]
    return min(around, key=lambda one: (abs(Fraction(float(one)) - exact), one.view("u4") & 1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("isa", [one for one in ALL if one.values[0].scales])
def test_powers_of_two_times_numbers_are_what_is_said_of_them(isa: Isa, dtype: str) -> None:
    def emit(x: Value, power: Value) -> Value:
        found = x.function.scaled(x, power)
        assert found is not None
        return found

    x, power = powers(dtype)
    same(ElementRunner(isa)(emit, (x, power), dtype, isa.lanes(8 * x.itemsize)), meanings.scaled(x, power))


def powers(dtype: str) -> tuple[Array, Array]:
    """Numbers, and powers of every size, with fractions and without; in the last part products are subnormal."""
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    reach = -2 * int(info.minexp) + 50
    whole = rng.integers(-reach, reach, COUNT).astype(dtype)
    small = rng.integers(info.minexp - info.nmant, info.minexp + 2, COUNT).astype(dtype)
    numbers = [*(floats(dtype, COUNT, place) for place in range(3)), floats(dtype, COUNT, 3, (-info.nmant, 2))]
    return np.concatenate(numbers), np.concatenate([whole, whole / 4, floats(dtype, COUNT, 1), small])


def test_powers_of_two_times_numbers_are_rounded_once() -> None:
    """As by the C library, in f64; and for f32 from the exact product."""
    for dtype in ("f4", "f8"):
        x, power = (np.delete(one, slice(2 * COUNT, 3 * COUNT)) for one in powers(dtype))
        x = np.where(np.isfinite(x), x, 1).astype(dtype)
        with np.errstate(over="ignore"):
            wanted = [ldexped(float(one), int(np.floor(n))) for one, n in zip(x, power, strict=True)]
            same(meanings.scaled(x, power), np.array(wanted).astype(dtype))


def ldexped(number: float, power: int) -> float:
    try:
        return ldexp(number, power)
    except OverflowError:
        return inf if number > 0 else -inf


@pytest.mark.parametrize(
    ("x", "power", "wanted"),
    [
        *[(0.0, inf, nan), (-0.0, inf, nan), (inf, -inf, nan), (-inf, -inf, nan), (nan, inf, inf), (nan, -inf, 0.0)],
        *[(-2.0, inf, -inf), (-2.0, -inf, -0.0), (-inf, inf, -inf), (1.0, nan, nan), (inf, nan, nan)],
        *[(-0.0, -inf, -0.0), (1.0, -149.5, 0.0), (1.5, -149.5, 2.0**-149), (3.0, -0.5, 1.5), (3.0, 1e30, inf)],
        (-3.0, -1e30, -0.0),
    ],
    ids=str,
)
def test_powers_without_end(x, power, wanted) -> None:
    same(meanings.scaled(np.array([x], "f4"), np.array([power], "f4")), np.array([wanted], "f4"))


@pytest.mark.parametrize("isa", [one for one in ALL if one.values[0].picks])
def test_lanes_are_picked_from_two_registers(isa: Isa) -> None:
    def emit(first: Value, second: Value, places: Value) -> Value:
        return first.function.picked(first, second, places)

    lanes = isa.lanes(16)
    first, second, places = (integers("u2", (8 * lanes,), seed) for seed in range(3))
    places[: 2 * lanes] = np.arange(2 * lanes)
    found = ElementRunner(isa)(emit, (first, second, places), "u2", lanes)
    rows = [one.reshape(8, lanes) for one in (first, second, places)]
    same(found, np.concatenate([meanings.picked(*row) for row in zip(*rows, strict=True)]))
    same(found[:lanes], first[:lanes])
    same(found[lanes : 2 * lanes], second[lanes : 2 * lanes])


@pytest.mark.parametrize("isa", [one for one in HERE if one.picks_bytes], ids=lambda isa: isa.name)
def test_bytes_are_picked_within_16_of_them(isa: Isa) -> None:
    def emit(value: Value, places: Value) -> Value:
        kind = ir_type(U8, value.lanes)
        callee = value.function.declared(f"llvm.{isa.picks_bytes}", kind, [kind, kind])
        return Value(value.function, value.function.builder.call(callee, [value.ir, places.ir]), U8, value.lanes)

    value, places = (integers("u1", (8 * isa.vector_bytes,), seed) for seed in (0, 1))
    same(ElementRunner(isa)(emit, (value, places), "u1", isa.vector_bytes), meanings.picked_bytes(value, places))


@pytest.mark.parametrize("isa", [one for one in HERE if one.lookup], ids=lambda isa: isa.name)
def test_bytes_are_found_in_rows_of_a_table(isa: Isa) -> None:
    lookup = isa.lookup
    assert lookup is not None

    def emit(*rows_and_places: Value) -> Value:
        *rows, places = rows_and_places
        return looked_up(lookup, rows, places)

    *rows, places = (integers("u1", (1024,), seed) for seed in range(lookup.rows + 1))
    found = ElementRunner(isa)(emit, (*rows, places), "u1", lookup.places)
    same(found, meanings.MEANINGS[lookup.name](*rows, places))


@pytest.mark.parametrize("registers", [0, 1, 2, 4])
@pytest.mark.parametrize("isa", ALL)
def test_bf16_are_the_upper_halves_of_f32(isa: Isa, registers: int) -> None:
    codes, runner, lanes = np.arange(1 << 16, dtype="u2"), ElementRunner(isa), registers * isa.lanes(32)
    found = runner(lambda x: x, codes.view(ml_dtypes.bfloat16), "f4", lanes)
    np.testing.assert_array_equal(found.view("u4"), codes.astype("u4") << 16)
    back = runner(lambda x: x, codes.view(ml_dtypes.bfloat16), ml_dtypes.bfloat16, lanes)
    np.testing.assert_array_equal(back.view("u2"), codes)


@pytest.mark.parametrize("registers", [0, 1, 2])
@pytest.mark.parametrize("isa", ALL)
def test_bf16_are_the_nearest_ones_to_f32_in_registers_and_in_memory(isa: Isa, registers: int) -> None:
    """Of all upper halves, and what lies next to the middle between two; of no number, what arithmetic gives."""
    upper = np.arange(1 << 16, dtype="u4")[:, None] << 16
    x = (upper + np.array([0, 1, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF], "u4")).ravel()
    x = np.where((x & 0x7FFFFFFF) > 0x7F800000, x & 0xFFFF0000, x)
    wanted = ((x.astype("u8") + 0x7FFF + (x >> 16 & 1)) & 0xFFFF0000).astype("u4")
    lanes = registers * isa.lanes(32)
    for to in ("f4", ml_dtypes.bfloat16):
        found = ElementRunner(isa)(lambda value: rounded(value, BF16), x.view("f4"), to, lanes)
        is_wide = found.itemsize == wanted.itemsize
        np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), wanted if is_wide else wanted >> 16)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("isa", [one for one in ALL if one.values[0].fma])
def test_numbers_are_multiplied_and_added_with_one_rounding(isa: Isa, dtype: str) -> None:
    spans = [None, (-3, 3)]
    x, factor, term = (
        np.concatenate([floats(dtype, 512, seed + place, span) for place, span in enumerate(spans)])
        for seed in (0, 10, 20)
    )
    with np.errstate(all="ignore"):
        term[512:768] = -(x * factor)[512:768]  # what is left is what rounding took away
    found = ElementRunner(isa)(lambda a, b, c: a.times_plus(b, c), (x, factor, term), dtype, isa.lanes(8 * x.itemsize))
    same(found, meanings.fused(x, factor, term))


FUSED: list[tuple[tuple[float, float, float], float]] = [
    ((1 + 2.0**-12, 1 + 2.0**-12, -1 - 2.0**-11), 2.0**-24),
    ((1, 1, 2.0**-24), 1),
    ((1 + 2.0**-23, 1 + 2.0**-23, 2.0**-60), 1 + 2.0**-22),
    ((1 + 2.0**-12, 2.0**-12 * (1 + 2.0**-12), 1), 1 + 2.0**-12 + 2.0**-23),
    ((1, 2.0**-24, 1 + 2.0**-23), 1 + 2.0**-22),
    ((2.0**-149, 0.5, 0), 0),
    ((2.0**-149, -0.5, -0.0), -0.0),
    ((2.0**-149, 0.5, 2.0**-149), 2.0**-148),
    ((3e38, 3e38, -inf), -inf),
    ((3e38, 2, -3e38), 3e38),
    ((0.0, -1.0, -0.0), -0.0),
    ((0.0, -1.0, 0.0), 0.0),
    ((1.0, -1.0, 1.0), 0.0),
    ((inf, 0.0, 1.0), nan),
    ((1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60), 1 + 2.0**-11 + 2.0**-23),  # next to a tie, more than f64 can tell
    ((1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-60)), 1 + 2.0**-11),
]
"""Two factors and a term, and their sum in f32, as worked out by hand."""


@pytest.mark.parametrize(("numbers", "wanted"), FUSED, ids=str)
def test_what_is_rounded_once(numbers, wanted) -> None:
    same(meanings.fused(*(np.array([one], "f4") for one in numbers)), np.array([wanted], "f4"))


@pytest.mark.parametrize("isa", [one for one in ALL if one.values[0].fma])
def test_instructions_round_once_where_it_is_worked_out_by_hand(isa: Isa) -> None:
    rows = FUSED + FUSED[: -len(FUSED) % isa.lanes(32)]
    numbers = tuple(np.array([row[0][place] for row in rows], "f4") for place in range(3))
    found = ElementRunner(isa)(lambda a, b, c: a.times_plus(b, c), numbers, "f4", isa.lanes(32))
    same(found, np.array([row[1] for row in rows], "f4"))


@pytest.mark.parametrize("isa", ALL)
def test_halves_are_what_is_said_of_them(isa: Isa) -> None:
    every = np.arange(1 << 16, dtype="u2").view("f2")
    same(ElementRunner(isa)(lambda x: x.function.convert(x, F32), every, "f4", isa.lanes(32)), meanings.float_of(every))
    between = (meanings.float_of(every).view("u4")[:, None] + np.array([0, 1, 0xFFF, 0x1000, 0x1001], "u4")).ravel()
    x = np.concatenate([between.view("f4"), floats("f4", 1 << 14, 0)])
    same(ElementRunner(isa)(lambda x: x.function.convert(x, F16), x, "f2", isa.lanes(32)), meanings.half_of(x))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("isa", ALL)
def test_numbers_are_rounded_to_integers_as_is_said(isa: Isa, dtype: str) -> None:
    halves = np.arange(-64, 64, dtype=dtype) / 2
    x = np.concatenate(
        [halves, halves + 2.0**22, halves + 2.0**51, floats(dtype, 4096, 0), floats(dtype, 4096, 1, (-3, 60))]
    )
    for emit, meaning in ((whole, meanings.whole), (floor, meanings.floor)):
        same(ElementRunner(isa)(emit, x, dtype, isa.lanes(8 * x.itemsize)), meaning(x))


def test_portable_sets_are_for_this_processor_and_have_keys_of_their_own() -> None:
    best, keys = HERE[-1], set()
    for isa in ISAS:
        found = portable(isa)
        assert (found.architecture, found.processor, found.features) == (
            best.architecture,
            best.processor,
            best.features,
        )
        assert (found.vector_bytes, found.registers, found.masks_bits) == (
            isa.vector_bytes,
            isa.registers,
            isa.masks_bits,
        )
        assert (found.dots, found.scales, found.picks, found.fma) == (isa.dots, isa.scales, isa.picks, isa.fma)
        keys |= {key_of("a kernel", one, "sources") for one in (isa, found)}
    assert len(keys) == 2 * len(ISAS)


def test_portable_sets_want_a_processor_that_there_are_kernels_for(monkeypatch) -> None:
    monkeypatch.setattr("tract_llvm.isa.of_this_machine", lambda: tuple(usable({}, "riscv64")))
    with pytest.raises(Unsupported, match="there are no kernels for processors of type"):
        portable(ISAS[0])


def test_what_a_portable_set_says_to_llvm_names_no_other_processor() -> None:
    elements = ElementRunner(portable(next(one for one in ISAS if one.name == "avx512bf16")))
    sums = sums_of(OF_BYTES)
    on_dot(elements, OF_BYTES, groups(OF_BYTES, "left", 0), groups(OF_BYTES, "right", 1), sums)
    assert "llvm." not in elements.text
