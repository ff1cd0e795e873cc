"""What the instructions of `tract_llvm.isa` compute, in NumPy.

Results are those of the instruction to the bit, but for not-a-number, of which it is not said which one it is. What
rounds rounds to the nearest, halves to even, as all programs have it set. Sources are the sections on instructions of
Intel's "64 and IA-32 Architectures Software Developer's Manual", volume 2 (SDM), Arm's "Architecture
Reference Manual for A-profile architecture", C7.2, and IEEE 754-2019.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tract_llvm.isa import Dot

Array = NDArray[Any]

_TYPES: Final = {"u8": np.uint8, "i8": np.int8, "i16": np.int16, "bf16": np.uint16}
"""Of factors, by their names; a bf16 is its bits."""

NORMAL: Final = 2.0**-126
"""The least f32 that is not subnormal."""


def dots(dot: Dot, left: Array, right: Array, sums: Array) -> Array:
    """What `Function.dots` gives, [lanes]. ``left``, ``right``: groups of factors, ``int32`` [lanes]."""
    names = dot.left, dot.right
    factors = [
        np.ascontiguousarray(one).view(_TYPES[name]).reshape(-1, dot.group)
        for one, name in zip((left, right), names, strict=True)
    ]
    first, second = factors[::-1] if dot.turned else factors
    if dot.adds:
        return MEANINGS[dot.name](first, second, sums)
    return _wrapped(MEANINGS[dot.name](first, second).astype(np.int64) + sums)


def squares(dot: Dot, left: Array, right: Array, sums: Array) -> Array:
    """What `Function.squares` gives, [lanes], by squares of four. ``left``, ``right``: as of `dots`."""
    rows, columns = (one.reshape(-1, 2, 2) for one in (left, right))
    factors = [
        np.ascontiguousarray(one).view(_TYPES[name]).reshape(-1, 2, 2 * dot.group)
        for one, name in ((rows, dot.left), (columns, dot.right))
    ]
    first, second = factors[::-1] if dot.turned else factors
    return MEANINGS[dot.square](first, second, sums.reshape(-1, 2, 2)).reshape(-1)


def _squares_of_integers(first: Array, second: Array, sums: Array) -> Array:
    """SMMLA, UMMLA, USMMLA: two rows of eight times two others, added to sums, which wrap around. Arm, "SMMLA"."""
    return _wrapped(np.einsum("nik,njk->nij", first.astype(np.int64), second.astype(np.int64)) + sums)


def _squares_of_bf16(first: Array, second: Array, sums: Array) -> Array:
    """BFMMLA: as by BFDOT for the first pair of each row and column, then for the second. Arm, "BFMMLA"."""
    shape = sums.shape
    total = sums.reshape(-1)
    for pair in (slice(2), slice(2, 4)):
        left, right = first[:, :, None, pair], second[:, None, :, pair]
        left, right = (np.broadcast_to(one, (*shape, 2)).reshape(-1, 2) for one in (left, right))
        total = _dots_of_bf16_to_odd(left, right, total)
    return total.reshape(shape)


def _multiplied(left: Array, right: Array) -> Array:
    """PMADDWD: both products of neighbours, added; what is 2**31 becomes -2**31. SDM, "PMADDWD", "VPMADDWD"."""
    return _wrapped((left.astype(np.int64) * right).sum(axis=1))


def _multiplied_onto(left: Array, right: Array, sums: Array) -> Array:
    """VPDPBUSD, VPDPBSSD, VPDPBUUD, VPDPWSSD, SDOT, UDOT, USDOT: products of neighbours are added to sums, which wrap.

    SDM and Arm, under these names; what saturates are others, VPDPBUSDS and VPDPWSSDS.
    """
    return _wrapped((left.astype(np.int64) * right).sum(axis=1) + sums)


def _wrapped(exact: Array) -> Array:
    return exact.astype(np.int64).astype(np.uint32).view(np.int32)


def _dots_of_bf16(left: Array, right: Array, sums: Array) -> Array:
    """VDPBF16PS: the second product of a pair is added to a sum, then the first one, each rounded once.

    Subnormal factors and sums are taken for zero, and a sum is zero that is subnormal once it is rounded to 24 digits.
    Overflow and signs are those of IEEE 754. SDM, "VDPBF16PS".
    """
    total: Array = _without_subnormal(sums)
    with np.errstate(all="ignore"):
        a, b = (_float_of_upper(one).astype(np.float64) for one in (left, right))
        for place in (1, 0):
            # Products are exact in f64, and so is what is added, unless one is below 2**-28 of the other one, which
            # rounding to f32 does not notice.
            total = _flushed(total.astype(np.float64) + a[:, place] * b[:, place])
    return total


def _dots_of_bf16_to_odd(left: Array, right: Array, sums: Array) -> Array:
    """BFDOT: both products are added, then they are added to a sum; each result is rounded to odd.

    That is: cut off to 24 digits, the last of which is 1 where anything was lost. Overflow is infinite. Subnormal
    factors, sums and results are taken for zero. Arm, "BFDOT (vector)", and its "BFDotAdd" where FPCR.EBF is 0.
    """
    with np.errstate(all="ignore"):
        a, b = (_float_of_upper(one).astype(np.float64) for one in (left, right))
        first, second = _to_odd(a * b).T
        return _sum_to_odd(_without_subnormal(sums), _sum_to_odd(first, second))


def _sum_to_odd(a: Array, b: Array) -> Array:
    """A sum of two f32. In f64 it is rounded to odd too, which leaves the digits behind those of f32 not all zero."""
    wide, other = a.astype(np.float64), b.astype(np.float64)
    total = wide + other
    of_other = total - wide
    lost = (wide - (total - of_other)) + (other - of_other)
    is_even = total.view(np.uint64) & 1 == 0
    return _to_odd(np.where((np.abs(lost) > 0) & is_even, np.nextafter(total, np.copysign(np.inf, lost)), total))


def _to_odd(exact: Array) -> Array:
    bits, behind = exact.view(np.uint64), np.uint64(2**29 - 1)
    odd = (bits & ~behind | np.where(bits & behind, behind + np.uint64(1), np.uint64(0))).view(np.float64)
    return _without_subnormal(np.where(np.isnan(exact), np.nan, odd).astype(np.float32))


def _float_of_upper(bits: Array) -> Array:
    """The f32 whose upper half is given, without what is subnormal."""
    return _without_subnormal((bits.astype(np.uint32) << 16).view(np.float32))


def _without_subnormal(x: Array) -> Array:
    return np.where(np.abs(x) < NORMAL, np.copysign(np.float32(0), x), x)


def tiles(dot: Dot, left: Array, right: Array, sums: Array) -> Array:
    """What `Tiles.add_products` gives, [rows, columns].

    ``left``, ``right``: groups of factors, ``int32`` [rows, steps] and [steps, columns].
    """
    factors = [
        np.ascontiguousarray(one).view(_TYPES[name]).reshape(*one.shape, dot.group)
        for one, name in ((left, dot.left), (right, dot.right))
    ]
    return MEANINGS[dot.name](*factors, sums)


def _tiles_of_bytes(left: Array, right: Array, sums: Array) -> Array:
    """TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD: the products of neighbours are added to sums, which wrap around.

    SDM, "TDPBSSD/TDPBSUD/TDPBUSD/TDPBUUD".
    """
    return _wrapped(np.einsum("msg,sng->mn", left.astype(np.int64), right.astype(np.int64)) + sums)


def _tiles_of_bf16(left: Array, right: Array, sums: Array) -> Array:
    """TDPBF16PS: first and second products of pairs are summed apart, step by step, each rounded once; then both.

    What is subnormal is zero, before and after. SDM, "TDPBF16PS".
    """
    with np.errstate(all="ignore"):
        a, b = (_float_of_upper(one).astype(np.float64) for one in (left, right))
        totals = [np.zeros(sums.shape, np.float32) for _ in range(2)]
        for step in range(a.shape[1]):
            for place in range(2):
                totals[place] = _flushed(totals[place].astype(np.float64) + a[:, step, None, place] * b[step, :, place])
        both = _flushed(totals[0].astype(np.float64) + totals[1])
        return _flushed(_without_subnormal(sums).astype(np.float64) + both)


def _flushed(exact: Array) -> Array:
    """The nearest f32, and zero for what is subnormal once it is rounded to 24 digits."""
    rounded = exact.astype(np.float32)
    return np.where(np.abs(exact) < NORMAL * (1 - 2.0**-25), np.copysign(np.float32(0), rounded), rounded)


def scaled(x: Array, power: Array) -> Array:
    """VSCALEFPS, VSCALEFPD: x * 2**floor(power), rounded once. SDM, "VSCALEFPS", and its table of special cases.

    0 times 2**inf and inf times 2**-inf are not-a-number, but quiet not-a-number times these is inf and 0.
    """
    with np.errstate(all="ignore"):
        steps = np.clip(np.nan_to_num(np.floor(power), nan=0), -5000, 5000).astype(np.int32)
        found = np.ldexp(x, steps)
        found = np.where(np.isnan(power) | _is_undefined(x, power), np.nan, found)
        is_quiet = np.isnan(x) & _quiet_bit(x)
        found = np.where(is_quiet & (power == np.inf), np.inf, found)
        return np.where(is_quiet & (power == -np.inf), 0, found).astype(x.dtype)


def _is_undefined(x: Array, power: Array) -> Array:
    return ((x == 0) & (power == np.inf)) | (np.isinf(x) & (power == -np.inf))


def _quiet_bit(x: Array) -> Array:
    """Whether the first digit behind the point is set."""
    whole, digits = np.dtype(f"u{x.itemsize}"), np.finfo(x.dtype).nmant
    return (x.view(whole) >> whole.type(digits - 1)) & 1 == 1


def picked(first: Array, second: Array, places: Array) -> Array:
    """VPERMI2W: lanes of two registers, by the lowest bits of places. SDM, "VPERMI2W/D/Q/PS/PD"."""
    lanes = np.concatenate([first, second])
    return lanes[places % len(lanes)]


def picked_bytes(value: Array, places: Array) -> Array:
    """VPSHUFB: bytes of each 128 bits by the lowest bits of places, 0 by those with the highest bit. SDM, "PSHUFB"."""
    rows, wanted = value.reshape(-1, 16), places.reshape(-1, 16)
    return np.where(wanted < 0x80, np.take_along_axis(rows, wanted & 15, axis=1), 0).astype(value.dtype).ravel()


def looked_up(*rows_and_places: Array) -> Array:
    """TBL: bytes of rows of 16, one behind the other, by places; 0 by those beyond them. Arm, "TBL"."""
    *rows, places = (one.reshape(-1, 16) for one in rows_and_places)
    table = np.concatenate([*rows, np.zeros_like(places)], axis=1)
    last = table.shape[1] - 1
    return np.take_along_axis(table, np.minimum(places, last).astype(np.intp), axis=1).ravel()


def _multiplied_by_pairs(first: Array, second: Array) -> Array:
    """PMADDUBSW, and PMADDWD with ones: sums of two products are cut off at the ends of 16 bits. SDM, "PMADDUBSW"."""
    products = first.astype(np.int64) * second
    return np.clip(products.reshape(len(products), -1, 2).sum(axis=2), -(2**15), 2**15 - 1).sum(axis=1)


MEANINGS: Final[Mapping[str, Callable[..., Array]]] = {
    "x86.sse2.pmadd.wd": _multiplied,
    "x86.avx2.pmadd.wd": _multiplied,
    "x86.avx2.pmadd.ub.sw": _multiplied_by_pairs,
    "x86.avx512.pmaddubs.w.512": _multiplied_by_pairs,
    "x86.avx512.pmaddw.d.512": _multiplied,
    "x86.avx512.vpdpbusd.256": _multiplied_onto,
    "x86.avx512.vpdpwssd.256": _multiplied_onto,
    "x86.avx2.vpdpbssd.256": _multiplied_onto,
    "x86.avx2.vpdpbuud.256": _multiplied_onto,
    "x86.avx10.vpdpbssd.512": _multiplied_onto,
    "x86.avx10.vpdpbuud.512": _multiplied_onto,
    "x86.avx512.vpdpbusd.512": _multiplied_onto,
    "x86.avx512.vpdpwssd.512": _multiplied_onto,
    "x86.avx512bf16.dpbf16ps.512": _dots_of_bf16,
    "aarch64.neon.sdot.v4i32.v16i8": _multiplied_onto,
    "aarch64.neon.udot.v4i32.v16i8": _multiplied_onto,
    "aarch64.neon.usdot.v4i32.v16i8": _multiplied_onto,
    "aarch64.neon.bfdot.v4f32.v8bf16": _dots_of_bf16_to_odd,
    "aarch64.neon.smmla.v4i32.v16i8": _squares_of_integers,
    "aarch64.neon.ummla.v4i32.v16i8": _squares_of_integers,
    "aarch64.neon.usmmla.v4i32.v16i8": _squares_of_integers,
    "aarch64.neon.bfmmla": _squares_of_bf16,
    "aarch64.sve.sdot.nxv4i32": _multiplied_onto,
    "aarch64.sve.udot.nxv4i32": _multiplied_onto,
    "aarch64.sve.usdot.nxv4i32": _multiplied_onto,
    "aarch64.sve.bfdot": _dots_of_bf16_to_odd,
    "aarch64.sve.smmla.nxv4i32": _squares_of_integers,
    "aarch64.sve.ummla.nxv4i32": _squares_of_integers,
    "aarch64.sve.usmmla.nxv4i32": _squares_of_integers,
    "aarch64.sve.bfmmla": _squares_of_bf16,
    "x86.tdpbusd": _tiles_of_bytes,
    "x86.tdpbssd": _tiles_of_bytes,
    "x86.tdpbuud": _tiles_of_bytes,
    "x86.tdpbsud": _tiles_of_bytes,
    "x86.tdpbf16ps": _tiles_of_bf16,
    "x86.avx512.mask.scalef.ps.512": scaled,
    "x86.avx512.mask.scalef.pd.512": scaled,
    "x86.avx512.vpermi2var.hi.512": picked,
    "x86.avx2.pshuf.b": picked_bytes,
    "aarch64.neon.tbl4.v16i8": looked_up,
}
"""By the names of LLVM. Factors of dots: [lanes, group] of their types, bf16 as ``uint16``; those of squares: [squares,
row or column, two groups], and their sums [squares, of the first factor, of the second]; of tiles: those of `tiles`
with one more axis, [..., group]; all else: [lanes].
"""


def fused(a: Array, b: Array, c: Array) -> Array:
    """`Isa.fma`: a * b + c, rounded once. IEEE 754, 5.4.1, "fusedMultiplyAdd"; SDM, "VFMADD231PS"; Arm, "FMLA"."""
    with np.errstate(all="ignore"):
        others = np.where(np.isfinite(a) & np.isfinite(b), c, a * b + c)
        found = [
            _fused(*numbers) if np.isfinite(numbers).all() else other
            for *numbers, other in zip(a, b, c, others, strict=True)
        ]
    return np.array(found, a.dtype)


def _fused(a: Any, b: Any, c: Any) -> Any:
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return a * b + c if a * b == 0 == c else a.dtype.type(0)
    try:
        nearest = np.float64(float(exact))
    except OverflowError:
        return a.dtype.type(np.inf if exact > 0 else -np.inf)
    return nearest if a.dtype == np.float64 else np.float32(_odd(nearest, exact))


def _odd(nearest: np.float64, exact: Fraction) -> np.float64:
    """Of the two f64 around a number the odd one, which can be rounded again. ``nearest``: the nearest one."""
    error = exact - Fraction(float(nearest))
    if error == 0 or nearest.view(np.uint64) & 1:
        return nearest
    return np.nextafter(nearest, np.inf if error > 0 else -np.inf)


def half_of(x: Array) -> Array:
    """`Isa.half`: the nearest f16 to an f32, subnormal ones too. SDM, "VCVTPS2PH"; Arm, "FCVTN"."""
    with np.errstate(all="ignore"):
        return x.astype(np.float16)


def float_of(half: Array) -> Array:
    """`Isa.half`: an f16 as f32. SDM, "VCVTPH2PS"; Arm, "FCVTL"."""
    with np.errstate(invalid="ignore"):
        return half.astype(np.float32)


def whole(x: Array) -> Array:
    """`Isa.rounds`: the nearest integer, halves to the even one. IEEE 754, 5.9; SDM, "VROUNDPS"; Arm, "FRINTN"."""
    with np.errstate(invalid="ignore"):
        return np.rint(x)


def floor(x: Array) -> Array:
    """`Isa.rounds`: the greatest integer that is not above x. The same sections, and Arm, "FRINTM"."""
    with np.errstate(invalid="ignore"):
        return np.floor(x)
