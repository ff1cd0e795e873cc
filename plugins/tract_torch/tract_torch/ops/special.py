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
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, And, Div, Eq, Gt, Le, Lt, Max, Mul, Or, Pow, Sub
from tract_core.ops.elementwise import Abs, Cos, Exp, Floor, Ln, Recip, RoundHalfToEven, Sign, Sin, Sqrt, Square, Tan
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import is_negative, times
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

Function = Callable[[NodeWiring, OutletId], OutletId]
"""``(wire, x) -> outlet``, of f64."""


def special(*names: str) -> Callable[[Function], Function]:
    """Decorator: offer a function of f64 as these operators, of tensors of any type."""

    def offer(function: Function) -> Function:
        @aten(ROWS, *names)
        def wire_special(call: Call, wire: NodeWiring) -> OutletId:
            x = call.tensor("self" if call.has("self") else "x")
            return wire.cast(function(wire, wire.cast(x, DatumType.F64)), call.kind)

        return function

    return offer


def plus(wire: NodeWiring, x: OutletId, number: float) -> OutletId:
    """x, and a number."""
    return wire.op(Add(), x, wire.scalar(number, x))


def minus(wire: NodeWiring, number: float, x: OutletId) -> OutletId:
    """A number less x."""
    return wire.op(Sub(), wire.scalar(number, x), x)


def polynomial(wire: NodeWiring, x: OutletId, coefficients: Sequence[float]) -> OutletId:
    """The polynomial whose coefficients are given from the constant one on (Horner)."""
    *others, last = coefficients
    found = wire.scalar(last, x)
    for coefficient in reversed(others):
        found = plus(wire, wire.op(Mul(), found, x), coefficient)
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


def _erfcx_of_size(wire: NodeWiring, x: OutletId) -> OutletId:
    """exp(x x) erfc(x) of numbers that are not negative."""
    four = plus(wire, x, 4)
    place = minus(wire, 1, wire.op(Div(), wire.scalar(8, x), four))
    return wire.op(Div(), polynomial(wire, place, _ERFCX), plus(wire, times(wire, x, 2), 1))


@special("aten.special_erfcx")
def erfcx(wire: NodeWiring, x: OutletId) -> OutletId:
    """exp(x x) erfc(x)"""
    found = _erfcx_of_size(wire, wire.op(Abs(), x))
    mirrored = wire.op(Sub(), times(wire, wire.op(Exp(), wire.op(Square(), x)), 2), found)
    return wire.select(wire.op(Lt(), x, wire.scalar(0, x)), mirrored, found)


@special("aten.erfc", "aten.special_erfc")
def erfc(wire: NodeWiring, x: OutletId) -> OutletId:
    """1 - erf(x), exact also where that is next to nothing"""
    falling = wire.op(Exp(), times(wire, wire.op(Square(), x), -1))
    found = wire.op(Mul(), falling, _erfcx_of_size(wire, wire.op(Abs(), x)))
    return wire.select(wire.op(Lt(), x, wire.scalar(0, x)), minus(wire, 2, found), found)


def _inverse_erfc(wire: NodeWiring, q: OutletId) -> OutletId:
    """The x, not negative, of which erfc(x) is q, between 0 and 1; by Newton's method on the logarithm of erfc.

    It begins with S. Winitzki, A handy approximation for the error function and its inverse, 2008.
    """
    logarithm = wire.op(Ln(), wire.op(Mul(), q, minus(wire, 2, q)))
    half, a = plus(wire, times(wire, logarithm, 0.5), 2 / (pi * 0.147)), 1 / 0.147
    root = wire.op(Sqrt(), wire.op(Sub(), wire.op(Square(), half), times(wire, logarithm, a)))
    x = wire.op(Sqrt(), wire.op(Max(), wire.op(Sub(), root, half), wire.scalar(0, q)))
    wanted = wire.op(Ln(), q)
    for _ in range(3):
        scaled = _erfcx_of_size(wire, x)
        excess = wire.op(Sub(), wire.op(Sub(), wire.op(Ln(), scaled), wire.op(Square(), x)), wanted)
        x = wire.op(Add(), x, times(wire, wire.op(Mul(), excess, scaled), sqrt(pi) / 2))
    return x


@special("aten.erfinv", "aten.special_erfinv")
def erfinv(wire: NodeWiring, x: OutletId) -> OutletId:
    """The inverse of erf"""
    size = wire.op(Abs(), x)
    far = _inverse_erfc(wire, minus(wire, 1, size))
    near = wire.op(Mul(), size, polynomial(wire, wire.op(Square(), size), (sqrt(pi) / 2, sqrt(pi) * pi / 24)))
    found = wire.select(wire.op(Lt(), size, wire.scalar(1e-4, x)), near, far)
    found = wire.select(wire.op(Eq(), size, wire.scalar(1, x)), wire.scalar(inf, x), found)
    return wire.op(Mul(), wire.op(Sign(), x), found)


@special("aten.special_ndtri")
def ndtri(wire: NodeWiring, x: OutletId) -> OutletId:
    """The number below which a share x of normal numbers is"""
    one, zero, half = (wire.scalar(number, x) for number in (1, 0, 0.5))
    is_low = wire.op(Lt(), x, half)
    found = times(wire, _inverse_erfc(wire, times(wire, wire.select(is_low, x, minus(wire, 1, x)), 2)), sqrt(2))
    found = wire.select(wire.op(Or(), *(wire.op(Eq(), x, end) for end in (zero, one))), wire.scalar(inf, x), found)
    return wire.select(is_low, times(wire, found, -1), found)


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


def _moved(wire: NodeWiring, x: OutletId) -> tuple[OutletId, OutletId]:
    """x, moved where it is small, and whether it was."""
    is_small = wire.op(Lt(), x, wire.scalar(_SHIFT, x))
    return wire.select(is_small, plus(wire, x, _SHIFT), x), is_small


def _mirrored(wire: NodeWiring, x: OutletId) -> tuple[OutletId, OutletId, OutletId]:
    """Whether x is below a half; 1 - x there, else x; and how far x is from the nearest integer, times pi."""
    is_left = wire.op(Lt(), x, wire.scalar(0.5, x))
    angle = times(wire, wire.op(Sub(), x, wire.op(RoundHalfToEven(), x)), pi)
    return is_left, wire.select(is_left, minus(wire, 1, x), x), angle


@special("aten.lgamma", "aten.special_gammaln")
def lgamma(wire: NodeWiring, x: OutletId) -> OutletId:
    """The logarithm of the magnitude of the gamma function: Stirling's series"""
    is_left, y, angle = _mirrored(wire, x)
    z, is_small = _moved(wire, y)
    inverse = wire.op(Recip(), z)
    series = [number / (2 * k * (2 * k - 1)) for k, number in enumerate(_BERNOULLI, 1)]
    tail = wire.op(Mul(), inverse, polynomial(wire, wire.op(Square(), inverse), series))
    logarithm = wire.op(Ln(), z)
    found = wire.op(Mul(), plus(wire, z, -0.5), plus(wire, logarithm, -1))  # (z - 1/2) ln(z) - z + 1/2
    found = plus(wire, wire.op(Add(), found, tail), log(2 * pi) / 2 - 0.5)
    steps = y
    for step in range(1, _SHIFT):
        steps = wire.op(Mul(), steps, plus(wire, y, step))
    found = wire.select(is_small, wire.op(Sub(), found, wire.op(Ln(), steps)), found)
    sine = wire.op(Abs(), wire.op(Sin(), angle))
    mirrored = wire.op(Sub(), minus(wire, log(pi), wire.op(Ln(), sine)), found)
    found = wire.select(is_left, mirrored, found)
    return wire.select(wire.op(Eq(), wire.op(Abs(), x), wire.scalar(inf, x)), wire.scalar(inf, x), found)


@special("aten.digamma", "aten.special_digamma", "aten.special_psi")
def digamma(wire: NodeWiring, x: OutletId) -> OutletId:
    """The derivative of the logarithm of the gamma function"""
    is_left, y, angle = _mirrored(wire, x)
    z, is_small = _moved(wire, y)
    inverse = wire.op(Recip(), z)
    square = wire.op(Square(), inverse)
    series = [number / (2 * k) for k, number in enumerate(_BERNOULLI, 1)]
    tail = wire.op(Mul(), square, polynomial(wire, square, series))
    found = wire.op(Sub(), wire.op(Sub(), wire.op(Ln(), z), times(wire, inverse, 0.5)), tail)
    steps = wire.op(Recip(), y)
    for step in range(1, _SHIFT):
        steps = wire.op(Add(), steps, wire.op(Recip(), plus(wire, y, step)))
    found = wire.select(is_small, wire.op(Sub(), found, steps), found)
    mirrored = wire.op(Sub(), found, wire.op(Div(), wire.scalar(pi, x), wire.op(Tan(), angle)))
    found = wire.select(is_left, mirrored, found)
    is_pole = wire.op(And(), is_left, wire.op(Eq(), angle, wire.scalar(0, x)))
    at_zero = wire.select(is_negative(wire, x), wire.scalar(inf, x), wire.scalar(-inf, x))
    pole = wire.select(wire.op(Eq(), x, wire.scalar(0, x)), at_zero, wire.scalar(nan, x))
    return wire.select(is_pole, pole, found)


def _hurwitz(wire: NodeWiring, s: OutletId, q: OutletId) -> OutletId:
    """The sum of (q + k)^-s over all k from 0 on, of s above 1 and q above 0: Euler's and Maclaurin's formula."""
    falling = times(wire, s, -1)
    total = wire.op(Pow(), q, falling)
    for step in range(1, _SHIFT):
        total = wire.op(Add(), total, wire.op(Pow(), plus(wire, q, step), falling))
    far = plus(wire, q, _SHIFT)
    power = wire.op(Pow(), far, falling)
    integral = wire.op(Div(), wire.op(Mul(), power, far), plus(wire, s, -1))
    total = wire.op(Add(), wire.op(Add(), total, integral), times(wire, power, 0.5))
    inverse = wire.op(Recip(), far)
    term = wire.op(Mul(), wire.op(Mul(), power, inverse), s)
    for k, number in enumerate(_BERNOULLI, 1):
        total = wire.op(Add(), total, times(wire, term, number / factorial(2 * k)))
        rising = wire.op(Mul(), plus(wire, s, 2 * k - 1), plus(wire, s, 2 * k))
        term = wire.op(Mul(), wire.op(Mul(), term, rising), wire.op(Square(), inverse))
    return total


@aten(ROWS, "aten.special_zeta.default")
def zeta(call: Call, wire: NodeWiring) -> OutletId:
    """Hurwitz' zeta function, of a second argument above 0; infinite at 0 and at integers below, no number between"""
    s, q = wire.ranks(*(call.operand(name, wire, DatumType.F64) for name in ("self", "other")))
    one, zero = (wire.scalar(number, s) for number in (1, 0))
    found = wire.select(wire.op(Gt(), q, zero), _hurwitz(wire, s, q), wire.scalar(nan, s))
    whole = wire.op(And(), wire.op(Le(), q, zero), wire.op(Eq(), q, wire.op(Floor(), q)))
    found = wire.select(wire.op(Or(), whole, wire.op(Eq(), s, one)), wire.scalar(inf, s), found)
    return wire.cast(wire.select(wire.op(Lt(), s, one), wire.scalar(nan, s), found), call.kind)


@aten(ROWS, "aten.polygamma", "aten.special_polygamma")
def polygamma(call: Call, wire: NodeWiring) -> OutletId:
    """The n-th derivative of digamma; below a half by that of the cotangent, which is a polynomial of it"""
    order, x = int(call.value("n")), wire.cast(call.tensor("self"), DatumType.F64)
    if order < 0:
        raise Unsupported(f"polygamma of order {order}", hint="an order from 0 on")
    if order == 0:
        return wire.cast(digamma(wire, x), call.kind)
    is_left, y, angle = _mirrored(wire, x)
    found = _hurwitz(wire, wire.scalar(order + 1, y), y)
    cotangent = wire.op(Recip(), wire.op(Tan(), angle))
    derivative = np.polynomial.Polynomial([0, 1])
    for _ in range(order):
        derivative = -derivative.deriv() * np.polynomial.Polynomial([1, 0, 1])
    sign = (-1) ** (order + 1)
    turned = polynomial(wire, cotangent, [float(one) * pi ** (order + 1) for one in derivative.coef])
    plain = times(wire, found, sign * factorial(order))
    mirrored = wire.op(Sub(), times(wire, plain, (-1) ** order), turned)
    found = wire.select(is_left, mirrored, plain)
    is_pole = wire.op(And(), is_left, wire.op(Eq(), angle, wire.scalar(0, x)))
    return wire.cast(wire.select(is_pole, wire.scalar(sign * inf, x), found), call.kind)


Integrand = Callable[[OutletId, Array], OutletId]
"""``(x, angles) -> outlet``, where x has an axis of size 1 for the angles."""

_POINTS: Final = 32
"""Where integrals over a half turn are taken: for arguments up to 30 they are exact to the last digits."""
_TERMS: Final = 12
"""Terms of asymptotic series, for arguments above 30."""


def _mean_over_half_turn(
    wire: NodeWiring, x: OutletId, integrand: Callable[[OutletId, np.ndarray], OutletId]
) -> OutletId:
    """The mean over angles between 0 and pi of ``integrand(x, angles)``, by the midpoint rule.

    It converges exponentially for whole periods: L. N. Trefethen and J. A. C. Weideman, The exponentially convergent
    trapezoidal rule, SIAM Review 56, 2014.
    """
    rank = wire.rank(x)
    angles = ((np.arange(_POINTS) + 0.5) * pi / _POINTS).reshape((1,) * rank + (-1,))
    found = wire.op(Reduce((rank,), Reducer.SUM), integrand(wire.unsqueeze(x, [rank]), angles))
    return times(wire, wire.squeeze(found, [rank]), 1 / _POINTS)


def _hankel(order: int) -> list[float]:
    """Coefficients of Hankel's asymptotic series of Bessel functions, in powers of 1/x."""
    found = [1.0]
    for k in range(1, _TERMS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


def _scaled_bessel_i(wire: NodeWiring, x: OutletId, order: int) -> OutletId:
    """exp(-|x|) I(x), of order 0 or 1."""
    size = wire.op(Abs(), x)

    def integrand(size: OutletId, angles: Array) -> OutletId:
        grown = wire.op(Exp(), wire.op(Mul(), size, wire.const(np.cos(angles) - 1)))
        return wire.op(Mul(), grown, wire.const(np.cos(angles))) if order else grown

    near = _mean_over_half_turn(wire, size, integrand)
    series = [(-1) ** k * one for k, one in enumerate(_hankel(order))]
    root = wire.op(Sqrt(), times(wire, size, 2 * pi))
    far = wire.op(Div(), polynomial(wire, wire.op(Recip(), size), series), root)
    found = wire.select(wire.op(Gt(), size, wire.scalar(30, x)), far, near)
    return wire.op(Mul(), wire.op(Sign(), x), found) if order else found


@special("aten.special_i0e")
def i0e(wire: NodeWiring, x: OutletId) -> OutletId:
    """exp(-|x|) I0(x)"""
    return _scaled_bessel_i(wire, x, 0)


@special("aten.special_i1e")
def i1e(wire: NodeWiring, x: OutletId) -> OutletId:
    """exp(-|x|) I1(x)"""
    return _scaled_bessel_i(wire, x, 1)


@special("aten.i0", "aten.special_i0", "aten.special_modified_bessel_i0")
def i0(wire: NodeWiring, x: OutletId) -> OutletId:
    """The modified Bessel function of order 0"""
    return wire.op(Mul(), i0e(wire, x), wire.op(Exp(), wire.op(Abs(), x)))


@special("aten.special_i1", "aten.special_modified_bessel_i1")
def i1(wire: NodeWiring, x: OutletId) -> OutletId:
    """The modified Bessel function of order 1"""
    return wire.op(Mul(), i1e(wire, x), wire.op(Exp(), wire.op(Abs(), x)))


def _bessel_j(wire: NodeWiring, x: OutletId, order: int) -> OutletId:
    """The Bessel function of order 0 or 1: the mean of cos(order t - x sin(t)), or Hankel's series."""
    size = wire.op(Abs(), x)

    def integrand(size: OutletId, angles: Array) -> OutletId:
        turned = wire.op(Mul(), size, wire.const(np.sin(angles)))
        return wire.op(Cos(), wire.op(Sub(), wire.const(order * angles), turned))

    near = _mean_over_half_turn(wire, size, integrand)
    series = [(-1) ** (k // 2) * one for k, one in enumerate(_hankel(order))]
    inverse = wire.op(Recip(), size)
    square = wire.op(Square(), inverse)
    even, odd = polynomial(wire, square, series[::2]), wire.op(Mul(), inverse, polynomial(wire, square, series[1::2]))
    angle = plus(wire, size, -(2 * order + 1) * pi / 4)
    waves = wire.op(Sub(), wire.op(Mul(), even, wire.op(Cos(), angle)), wire.op(Mul(), odd, wire.op(Sin(), angle)))
    far = wire.op(Mul(), waves, wire.op(Sqrt(), times(wire, inverse, 2 / pi)))
    found = wire.select(wire.op(Gt(), size, wire.scalar(30, x)), far, near)
    return wire.op(Mul(), wire.op(Sign(), x), found) if order else found


@special("aten.special_bessel_j0")
def bessel_j0(wire: NodeWiring, x: OutletId) -> OutletId:
    """The Bessel function of order 0"""
    return _bessel_j(wire, x, 0)


@special("aten.special_bessel_j1")
def bessel_j1(wire: NodeWiring, x: OutletId) -> OutletId:
    """The Bessel function of order 1"""
    return _bessel_j(wire, x, 1)


@special("aten.special_spherical_bessel_j0")
def spherical_bessel_j0(wire: NodeWiring, x: OutletId) -> OutletId:
    """sin(x) / x, by its series near 0"""
    series = polynomial(wire, wire.op(Square(), x), [(-1) ** k / factorial(2 * k + 1) for k in range(8)])
    far = wire.op(Div(), wire.op(Sin(), x), x)
    far = wire.select(wire.op(Eq(), wire.op(Abs(), x), wire.scalar(inf, x)), wire.scalar(0, x), far)
    return wire.select(wire.op(Lt(), wire.op(Abs(), x), wire.scalar(0.5, x)), series, far)
