"""Instructions in plain operations of LLVM, for processors that lack them.

Each gives the bits that `tract_llvm.meanings` says, but for those of not-a-number.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Final

from tract_llvm.isa import Dot
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.convert import converted, cut_off
from tract_llvm.language.types import F32, F64, I32, I64, INDEX, U32, ElementType, element_named
from tract_llvm.language.values import Emitter, Value

_NORMAL: Final = 2.0**-126
"""The least f32 that is not subnormal."""

_ROUNDED_TO_NORMAL: Final = _NORMAL * (1 - 2.0**-25)
"""The least number that becomes normal when it is rounded to the digits of an f32."""


def dots(dot: Dot, left: Value, right: Value, sums: Value) -> Value:
    """As `Function.dots`."""
    if dot.sums == F32.name:
        return (_dots_of_bf16_to_odd if dot.name.startswith("aarch64") else _dots_of_bf16)(left, right, sums)
    for place in range(dot.group):
        sums = sums + _neighbour(left, dot.left, place) * _neighbour(right, dot.right, place)
    return sums


def squares(dot: Dot, left: Value, right: Value, sums: Value) -> Value:
    """As `Function.squares`."""
    shuffled = sums.function.shuffled
    of_rows, of_columns = ((0, 2, 0, 2), (0, 0, 2, 2)) if dot.turned else ((0, 0, 2, 2), (0, 2, 0, 2))
    for group in range(2):
        rows, columns = (
            [square + place + group for square in range(0, sums.lanes, 4) for place in places]
            for places in (of_rows, of_columns)
        )
        sums = dots(dot, shuffled(left, left, rows), shuffled(right, right, columns), sums)
    return sums


def products_of_tiles(
    function: Emitter, dot: Dot, steps: Value, factors: Callable[[Value], tuple[Value, Value]], sums: Buffer
) -> None:
    """Add to a row of sums the products of groups, step by step; of bf16, those of first and second ones apart."""
    lanes = function.isa.lanes(32)
    if dot.sums != F32.name:
        total = function.variable(sums.vector(0, lanes))
        with function.loop("step", steps) as step:
            total.value = dots(dot, *factors(step), total.value)
        sums.put(0, total.value)
        return
    totals = [function.variable(function.constant(0, F32, lanes)) for _ in range(2)]
    with function.loop("step", steps) as step:
        left, right = factors(step)
        pairs = ((left << 16, right << 16), (left & -0x10000, right & -0x10000))
        for one, (a, b) in zip(totals, pairs, strict=True):
            one.value = _flushed_sum(one.value, a.bits(F32), b.bits(F32))
    first, second = (one.value for one in totals)
    both = _flushed_sum(first, second, second.like(1))
    sums.put(0, _flushed_sum(_flushed(sums.vector(0, lanes)), both, both.like(1)))


def _neighbour(groups: Value, name: str, place: int) -> Value:
    """One integer out of every group."""
    kind = element_named(name)
    highest = groups << (groups.type.bits - kind.bits * (place + 1))
    wide = converted(highest, I32 if kind.kind == "i" else U32)
    return converted(wide >> (groups.type.bits - kind.bits), groups.type)


def _dots_of_bf16(left: Value, right: Value, sums: Value) -> Value:
    """The upper products first, each added with one rounding; what is subnormal, before or after, is zero."""
    sums = _flushed(sums)
    for a, b in (left & -0x10000, right & -0x10000), (left << 16, right << 16):
        sums = _flushed_sum(sums, a.bits(F32), b.bits(F32))
    return sums


def _flushed_sum(sums: Value, a: Value, b: Value) -> Value:
    """Sums plus products of numbers of at most 16 digits together, rounded once; what is subnormal is zero."""
    # The product has 16 digits, or 24 where a factor is 1, and the sum 24: either f64 holds both added, or the smaller
    # one is below 2**-28 of the larger one, which rounding to f32 does not notice. So rounding to f64 first is no harm.
    a, b = (converted(_flushed(one), F64) for one in (a, b))
    exact = converted(sums, F64) + a * b
    rounded = converted(exact, F32)
    is_tiny = sums.function.intrinsic("fabs", exact) < _ROUNDED_TO_NORMAL
    return sums.function.select(is_tiny, _zero(rounded), rounded)


def _dots_of_bf16_to_odd(left: Value, right: Value, sums: Value) -> Value:
    """Both products are added, then they are added to the sum; each result is rounded to odd, or zero if subnormal."""
    products = [
        _to_odd(converted(_flushed(a.bits(F32)), F64) * converted(_flushed(b.bits(F32)), F64))
        for a, b in ((left << 16, right << 16), (left & -0x10000, right & -0x10000))
    ]
    return _sum_to_odd(_flushed(sums), _sum_to_odd(*products))


def _sum_to_odd(a: Value, b: Value) -> Value:
    """What f64 loses of a sum is added apart, to make its last digit 1: rounding to f32 notices then."""
    a, b = converted(a, F64), converted(b, F64)
    total = a + b
    of_b = total - a
    lost = (a - (total - of_b)) + (b - of_b)
    bits = total.bits(I64)
    is_even = (a.function.intrinsic("fabs", lost) > 0) & (bits & 1).equals(0)
    up_or_down = (lost.bits(I64) ^ bits) >> 63 | 1
    return _to_odd(a.function.select(is_even, bits + up_or_down, bits).bits(F64))


def _to_odd(exact: Value) -> Value:
    """The f32 with the digits that it has room for, the last of which is 1 where there are more."""
    select, bits, last = exact.function.select, exact.bits(I64), 1 << 29
    cut = bits & -last
    rounded = converted(select((bits & (last - 1)).equals(0), cut, cut | last).bits(F64), F32)
    return select(exact.function.intrinsic("fabs", exact) < _NORMAL, _zero(rounded), rounded)


def _flushed(x: Value) -> Value:
    """``x``, or a zero of its sign where it is subnormal."""
    return x.function.select(x.function.intrinsic("fabs", x) < _NORMAL, _zero(x), x)


def _zero(x: Value) -> Value:
    """The zero of the same sign."""
    return x.function.intrinsic("copysign", x.like(0), x)


_FORMATS: Final[dict[ElementType, tuple[ElementType, int, int]]] = {F32: (I32, 23, 127), F64: (I64, 52, 1023)}
"""Of floats: the integers of their width, how many digits are behind the point, and what stands for 2**0."""


def scaled(x: Value, power: Value) -> Value:
    """As `Function.scaled`, for any number as the power, whose fraction is cut off."""
    select, (whole, digits, _) = x.function.select, _FORMATS[x.type]
    is_inf, is_minus_inf = power.equals(inf), power.equals(-inf)
    is_wrong = is_inf & x.equals(0) | is_minus_inf & x.function.intrinsic("fabs", x).equals(inf)
    found = select(is_wrong | power.differs(power), x.like(nan), _times_power(x, power))
    is_quiet = x.differs(x) & (x.bits(whole) & 1 << (digits - 1)).differs(0)
    found = select(is_quiet & is_inf, x.like(inf), found)
    return select(is_quiet & is_minus_inf, x.like(0), found)


def _times_power(x: Value, power: Value) -> Value:
    """X * 2**floor(power), rounded once, in three steps: a step down keeps all digits unless nothing is left of x."""
    select, (whole, digits, bias) = x.function.select, _FORMATS[x.type]
    down = bias - digits - 2
    end = power.like(3 * bias)
    bounded = select(power < end, power, end)
    bounded = select(bounded > -end, bounded, -end)
    cut = cut_off(bounded, whole)
    n = select(converted(cut, x.type) > bounded, cut - 1, cut)
    for _ in range(2):
        is_low, is_high = n < 1 - bias, n > bias
        x = select(is_low, x * 2.0**-down, select(is_high, x * 2.0**bias, x))
        n = select(is_low, n + down, select(is_high, n - bias, n))
    n = select(n < 1 - bias, n.like(1 - bias), n)
    return x * ((n + bias) << digits).bits(x.type)


def picked(held: Buffer, first: Value, second: Value, places: Value) -> Value:
    """As `Function.picked`: both registers are laid down in memory, ``held``, and read lane by lane."""
    lanes = first.lanes
    held.put(0, first)
    held.put(lanes, second)
    return held.gather(converted(places & (2 * lanes - 1), INDEX))
