"""Special functions of one real number: error functions, the gamma function and its derivatives, Bessel functions.

Each is made of elementary operators, and computed in f64 whatever the type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, inf, log, nan, pi, sqrt
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.polar_wiring import is_negative
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

Function = Callable[[Wired], Wired]
"""``x -> y``, of f64."""


def special(*names: str) -> Callable[[Function], Function]:
    """Decorator: offer a function of f64 as these operators, of tensors of any type."""

    def offer(function: Function) -> Function:
        @aten(ROWS, *names)
        def wire_special(call: Call, wire: NodeWiring) -> Wired:
            x = Wired(wire, call.input("self" if call.has("self") else "x"))
            return function(x.cast(DatumType.F64)).cast(call.kind)

        return function

    return offer


def polynomial(x: Wired, coefficients: Sequence[float]) -> Wired:
    """The polynomial whose coefficients are given from the constant one on (Horner)."""
    *others, last = coefficients
    found = x.like(last)
    for coefficient in reversed(others):
        found = found * x + coefficient
    return found


_ERFCX: Final = (
    *(1.2329951186255526, -0.1396211168405625, 0.015379652102610162, 0.0680970542546862, -0.10103906603585294),
    *(0.09373283499865172, -0.06633036582050367, 0.0371675155318432, -0.016197733979924262, 0.0050319700325486905),
    *(-0.0007577737141838632, -0.00019925700412182283, 0.00015062311785153773, -2.43981179421631e-05),
    *(-1.122514035427581e-05, 5.707239573867476e-06, 2.980596052996746e-07, -8.218020657144059e-07),
    *(7.111912447232717e-08, 1.0683442946008124e-07, -1.635738407146492e-08, -1.2544825493387366e-08),
    *(1.5712153816846637e-09, 9.655408404393497e-10),
)
"""(1 + 2 y) exp(y y) erfc(y) as a polynomial of (y - 4)/(y + 4), by its Chebyshev series: Shepherd and Laframboise,
Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, Mathematics of Computation 36, 1981. The error is below 3e-16."""


def _erfcx_of_size(x: Wired) -> Wired:
    """exp(x x) erfc(x) of numbers that are not negative."""
    return polynomial(1 - 8 / (x + 4), _ERFCX) / (x * 2 + 1)


@special("aten.special_erfcx")
def erfcx(x: Wired) -> Wired:
    """exp(x x) erfc(x)"""
    found = _erfcx_of_size(abs(x))
    return (x < 0).where(x.square().exp() * 2 - found, found)


@special("aten.erfc", "aten.special_erfc")
def erfc(x: Wired) -> Wired:
    """1 - erf(x), exact also where that is next to nothing"""
    found = (x.square() * -1).exp() * _erfcx_of_size(abs(x))
    return (x < 0).where(2 - found, found)


def _inverse_erfc(q: Wired) -> Wired:
    """The x, not negative, of which erfc(x) is q, between 0 and 1; by Newton's method on the logarithm of erfc.

    It begins with S. Winitzki, A handy approximation for the error function and its inverse, 2008.
    """
    logarithm = (q * (2 - q)).log()
    half, a = logarithm * 0.5 + 2 / (pi * 0.147), 1 / 0.147
    x = ((half.square() - logarithm * a).sqrt() - half).maximum(0).sqrt()
    wanted = q.log()
    for _ in range(3):
        scaled = _erfcx_of_size(x)
        excess = scaled.log() - x.square() - wanted
        x = x + excess * scaled * (sqrt(pi) / 2)
    return x


@special("aten.erfinv", "aten.special_erfinv")
def erfinv(x: Wired) -> Wired:
    """The inverse of erf"""
    size = abs(x)
    far = _inverse_erfc(1 - size)
    near = size * polynomial(size.square(), (sqrt(pi) / 2, sqrt(pi) * pi / 24))
    found = (size < 1e-4).where(near, far)
    return x.sign() * size.eq(1).where(inf, found)


@special("aten.special_ndtri")
def ndtri(x: Wired) -> Wired:
    """The number below which a share x of normal numbers is"""
    is_low = x < 0.5
    found = _inverse_erfc(is_low.where(x, 1 - x) * 2) * sqrt(2)
    found = (x.eq(0) | x.eq(1)).where(inf, found)
    return is_low.where(found * -1, found)


_BERNOULLI: Final = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)
"""B(2), B(4) and so on."""
_SHIFT: Final = 10
"""By how much small numbers are moved, to where asymptotic series hold."""


def _moved(x: Wired) -> tuple[Wired, Wired]:
    """x, moved where it is small, and whether it was."""
    is_small = x < _SHIFT
    return is_small.where(x + _SHIFT, x), is_small


def _mirrored(x: Wired) -> tuple[Wired, Wired, Wired]:
    """Whether x is below a half; 1 - x there, else x; and how far x is from the nearest integer, times pi."""
    is_left = x < 0.5
    angle = (x - x.round_half_to_even()) * pi
    return is_left, is_left.where(1 - x, x), angle


@special("aten.lgamma", "aten.special_gammaln")
def lgamma(x: Wired) -> Wired:
    """The logarithm of the magnitude of the gamma function: Stirling's series"""
    is_left, y, angle = _mirrored(x)
    z, is_small = _moved(y)
    inverse = z.reciprocal()
    series = [number / (2 * k * (2 * k - 1)) for k, number in enumerate(_BERNOULLI, 1)]
    tail = inverse * polynomial(inverse.square(), series)
    logarithm = z.log()
    found = (z + -0.5) * (logarithm + -1) + tail + (log(2 * pi) / 2 - 0.5)  # (z - 1/2) ln(z) - z + 1/2 and so on
    steps = y
    for step in range(1, _SHIFT):
        steps = steps * (y + step)
    found = is_small.where(found - steps.log(), found)
    sine = abs(angle.sin())
    found = is_left.where(log(pi) - sine.log() - found, found)
    return abs(x).eq(inf).where(inf, found)


@special("aten.digamma", "aten.special_digamma", "aten.special_psi")
def digamma(x: Wired) -> Wired:
    """The derivative of the logarithm of the gamma function"""
    is_left, y, angle = _mirrored(x)
    z, is_small = _moved(y)
    inverse = z.reciprocal()
    square = inverse.square()
    tail = square * polynomial(square, [number / (2 * k) for k, number in enumerate(_BERNOULLI, 1)])
    found = z.log() - inverse * 0.5 - tail
    steps = y.reciprocal()
    for step in range(1, _SHIFT):
        steps = steps + (y + step).reciprocal()
    found = is_small.where(found - steps, found)
    found = is_left.where(found - pi / angle.tan(), found)
    is_pole = is_left & angle.eq(0)
    at_zero = is_negative(x).where(x.like(inf), -inf)
    pole = x.eq(0).where(at_zero, nan)
    return is_pole.where(pole, found)


def _hurwitz(s: Wired, q: Wired) -> Wired:
    """The sum of (q + k)^-s over all k from 0 on, of s above 1 and q above 0: Euler's and Maclaurin's formula."""
    falling = s * -1
    total = q**falling
    for step in range(1, _SHIFT):
        total = total + (q + step) ** falling
    far = q + _SHIFT
    power = far**falling
    integral = power * far / (s + -1)
    total = total + integral + power * 0.5
    inverse = far.reciprocal()
    term = power * inverse * s
    for k, number in enumerate(_BERNOULLI, 1):
        total = total + term * (number / factorial(2 * k))
        rising = (s + (2 * k - 1)) * (s + 2 * k)
        term = term * rising * inverse.square()
    return total


@aten(ROWS, "aten.special_zeta.default")
def zeta(call: Call, wire: NodeWiring) -> Wired:
    """Hurwitz' zeta function, of a second argument above 0; infinite at 0 and at integers below, no number between"""
    operands = wire.ranks(*(call.operand(name, wire, DatumType.F64) for name in ("self", "other")))
    s, q = (Wired(wire, x) for x in operands)
    found = (q > 0).where(_hurwitz(s, q), nan)
    whole = (q <= 0) & q.eq(q.floor())
    found = (whole | s.eq(1)).where(inf, found)
    return (s < 1).where(nan, found).cast(call.kind)


@aten(ROWS, "aten.polygamma", "aten.special_polygamma")
def polygamma(call: Call, wire: NodeWiring) -> Wired:
    """The n-th derivative of digamma; below a half by that of the cotangent, which is a polynomial of it"""
    order, x = call.integer("n"), call.tensor("self").cast(DatumType.F64)
    if order < 0:
        raise Unsupported(f"polygamma of order {order}", hint="an order from 0 on")
    if order == 0:
        return digamma(x).cast(call.kind)
    is_left, y, angle = _mirrored(x)
    found = _hurwitz(y.like(order + 1), y)
    cotangent = angle.tan().reciprocal()
    derivative = np.polynomial.Polynomial([0, 1])
    for _ in range(order):
        derivative = -derivative.deriv() * np.polynomial.Polynomial([1, 0, 1])
    sign = (-1) ** (order + 1)
    turned = polynomial(cotangent, [float(one) * pi ** (order + 1) for one in derivative.coef])
    plain = found * (sign * factorial(order))
    found = is_left.where(plain * (-1) ** order - turned, plain)
    is_pole = is_left & angle.eq(0)
    return is_pole.where(sign * inf, found).cast(call.kind)


Integrand = Callable[[Wired, Array], Wired]
"""``(x, angles) -> y``, where x has an axis of size 1 for the angles."""

_POINTS: Final = 32
"""Where integrals over a half turn are taken: for arguments up to 30 they are exact to the last digits."""
_TERMS: Final = 12
"""Terms of asymptotic series, for arguments above 30."""


def _mean_over_half_turn(x: Wired, integrand: Integrand) -> Wired:
    """The mean over angles between 0 and pi of ``integrand(x, angles)``, by the midpoint rule.

    It converges exponentially for whole periods: L. N. Trefethen and J. A. C. Weideman, The exponentially convergent
    trapezoidal rule, SIAM Review 56, 2014.
    """
    angles = ((np.arange(_POINTS) + 0.5) * pi / _POINTS).reshape((1,) * x.rank + (-1,))
    return integrand(x[..., None], angles).sum([x.rank])[..., 0] * (1 / _POINTS)


def _hankel(order: int) -> list[float]:
    """Coefficients of Hankel's asymptotic series of Bessel functions, in powers of 1/x."""
    found = [1.0]
    for k in range(1, _TERMS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


def _scaled_bessel_i(x: Wired, order: int) -> Wired:
    """exp(-|x|) I(x), of order 0 or 1."""
    size = abs(x)

    def integrand(size: Wired, angles: Array) -> Wired:
        grown = (size * (np.cos(angles) - 1)).exp()
        return grown * np.cos(angles) if order else grown

    near = _mean_over_half_turn(size, integrand)
    series = [(-1) ** k * one for k, one in enumerate(_hankel(order))]
    root = (size * (2 * pi)).sqrt()
    far = polynomial(size.reciprocal(), series) / root
    found = (size > 30).where(far, near)
    return x.sign() * found if order else found


@special("aten.special_i0e")
def i0e(x: Wired) -> Wired:
    """exp(-|x|) I0(x)"""
    return _scaled_bessel_i(x, 0)


@special("aten.special_i1e")
def i1e(x: Wired) -> Wired:
    """exp(-|x|) I1(x)"""
    return _scaled_bessel_i(x, 1)


@special("aten.i0", "aten.special_i0", "aten.special_modified_bessel_i0")
def i0(x: Wired) -> Wired:
    """The modified Bessel function of order 0"""
    return i0e(x) * abs(x).exp()


@special("aten.special_i1", "aten.special_modified_bessel_i1")
def i1(x: Wired) -> Wired:
    """The modified Bessel function of order 1"""
    return i1e(x) * abs(x).exp()


def _bessel_j(x: Wired, order: int) -> Wired:
    """The Bessel function of order 0 or 1: the mean of cos(order t - x sin(t)), or Hankel's series."""
    size = abs(x)
    near = _mean_over_half_turn(size, lambda size, angles: (order * angles - size * np.sin(angles)).cos())
    series = [(-1) ** (k // 2) * one for k, one in enumerate(_hankel(order))]
    inverse = size.reciprocal()
    square = inverse.square()
    even, odd = polynomial(square, series[::2]), inverse * polynomial(square, series[1::2])
    angle = size + -(2 * order + 1) * pi / 4
    waves = even * angle.cos() - odd * angle.sin()
    far = waves * (inverse * (2 / pi)).sqrt()
    found = (size > 30).where(far, near)
    return x.sign() * found if order else found


@special("aten.special_bessel_j0")
def bessel_j0(x: Wired) -> Wired:
    """The Bessel function of order 0"""
    return _bessel_j(x, 0)


@special("aten.special_bessel_j1")
def bessel_j1(x: Wired) -> Wired:
    """The Bessel function of order 1"""
    return _bessel_j(x, 1)


@special("aten.special_spherical_bessel_j0")
def spherical_bessel_j0(x: Wired) -> Wired:
    """sin(x) / x, by its series near 0"""
    series = polynomial(x.square(), [(-1) ** k / factorial(2 * k + 1) for k in range(8)])
    far = abs(x).eq(inf).where(0, x.sin() / x)
    return (abs(x) < 0.5).where(series, far)
