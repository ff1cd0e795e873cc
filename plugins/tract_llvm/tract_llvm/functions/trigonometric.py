"""sin, cos and tan: of the rest of at most pi/4 polynomials, which the number of quarter turns chooses from."""

from __future__ import annotations

from math import inf, nan

from tract_llvm.functions.coefficients import COS, SIN
from tract_llvm.functions.floats import format_of, magnitude, polynomial
from tract_llvm.functions.quarter_turns import quarter_turns
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, F64, U32
from tract_llvm.language.values import Value


def _angle(x: Value) -> tuple[Value, Value, Value]:
    """``(n, sin(r), cos(r))`` of the magnitude; all are not-a-number where x is infinite."""
    function, narrow = x.function, x.type is F32
    size = magnitude(x)
    size = where(size < inf, size, size.like(nan))
    n, r, missing = quarter_turns(function.convert(size, F64), from_f32=narrow)
    if narrow:
        n, r, missing = function.convert(n, U32), function.convert(r, F32), x.like(0)
    return n, *sine_and_cosine(r, missing)


def sine_and_cosine(r: Value, missing: Value) -> tuple[Value, Value]:
    """Of ``r + missing``, of which the first is at most pi/4, and the second is no larger than its last digit."""
    z = r * r
    half = z * 0.5
    sine = r + (r * z).times_plus(polynomial(z, SIN[r.type]), missing.times_plus(-half, missing))
    top = 1.0 - half
    cosine = top + ((1.0 - top - half) + (z * z).times_plus(polynomial(z, COS[r.type]), -(r * missing)))
    return sine, cosine


def _turned(x: Value, by: Value) -> Value:
    """``x``, with the other sign where the second bit of ``by`` is 1."""
    kind = format_of(x)
    sign = (by & 2) << (x.type.bits - 2)
    return (x.bits(kind.whole) ^ sign).bits(x.type)


def _odd(n: Value) -> Value:
    return (n & 1).differs(0)


def _with_sign_of(found: Value, x: Value) -> Value:
    kind = format_of(x)
    sign = x.bits(kind.whole) & (1 << (x.type.bits - 1))
    return (found.bits(kind.whole) ^ sign).bits(x.type)


def sin(x: Value) -> Value:
    """The sine. Within 1.6 units."""
    n, sine, cosine = _angle(x)
    return _with_sign_of(_turned(where(_odd(n), cosine, sine), n), x)


def cos(x: Value) -> Value:
    """The cosine. Within 1.6 units."""
    n, sine, cosine = _angle(x)
    return _turned(where(_odd(n), sine, cosine), n + 1)


def tan(x: Value) -> Value:
    """The tangent: the quotient of both. Within 3.3 units."""
    n, sine, cosine = _angle(x)
    odd = _odd(n)
    return _with_sign_of(where(odd, -cosine, sine) / where(odd, sine, cosine), x)
