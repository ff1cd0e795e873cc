"""Operators that take each element by itself."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi
from typing import Final

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import elementwise as core
from tract_core.ops.binary import Max, Min
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.polar_wiring import is_negative
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import ATEN, AtenFn, aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_FLOATS: Final[dict[str, TypedOp]] = {
    "acos": core.Acos(),
    "acosh": core.Acosh(),
    "asin": core.Asin(),
    "asinh": core.Asinh(),
    "atan": core.Atan(),
    "atanh": core.Atanh(),
    "cos": core.Cos(),
    "cosh": core.Cosh(),
    "erf": core.Erf(),
    "exp": core.Exp(),
    "hardswish": core.HardSwish(),
    "log": core.Ln(),
    "reciprocal": core.Recip(),
    "rsqrt": core.Rsqrt(),
    "sigmoid": core.Sigmoid(),
    "silu": core.Silu(),
    "sin": core.Sin(),
    "sinh": core.Sinh(),
    "sqrt": core.Sqrt(),
    "tan": core.Tan(),
    "tanh": core.Tanh(),
}
"""Functions of floats; integers become floats first."""

_SAME: Final[dict[str, TypedOp]] = {"abs": core.Abs(), "neg": core.Neg()}
"""Functions of any numbers."""

_ROUNDING: Final[dict[str, TypedOp]] = {"ceil": core.Ceil(), "floor": core.Floor()}
"""Functions of floats that leave integers as they are."""


def _of_floats(op: TypedOp) -> AtenFn:
    def wire_floats(call: Call, wire: NodeWiring) -> OutletId:
        return wire.op(op, wire.cast(call.input("self"), call.kind))

    return wire_floats


def _of_all(op: TypedOp) -> AtenFn:
    def wire_all(call: Call, wire: NodeWiring) -> OutletId:
        return wire.op(op, call.input("self"))

    return wire_all


def _rounded(op: TypedOp) -> AtenFn:
    def wire_rounded(call: Call, wire: NodeWiring) -> OutletId:
        x = call.input("self")
        return wire.op(op, x) if wire.dtype(x).is_float() else x

    return wire_rounded


for _names, _wired in ((_FLOATS, _of_floats), (_SAME, _of_all), (_ROUNDING, _rounded)):
    for _name, _op in _names.items():
        ROWS.add(ATEN, f"aten.{_name}", _wired(_op))


@aten(ROWS, "aten.sign", "aten.sgn")
def sign(call: Call, wire: NodeWiring) -> Wired:
    """-1, 0 or 1; 0 of what is not a number"""
    x = call.tensor("self")
    if x.dtype.is_bool():
        return x
    found = x.sign()
    return x.is_nan().where(0, found) if x.dtype.is_float() else found


@aten(ROWS, "aten.relu")
def relu(call: Call, wire: NodeWiring) -> Wired:
    """max(x, 0)"""
    return call.tensor("self").maximum(0)


@aten(ROWS, "aten.gelu")
def gelu(call: Call, wire: NodeWiring) -> OutletId:
    """X times the share of normal numbers below x, or the usual approximation of it by tanh"""
    op = core.GeluApproximate() if call.value("approximate") == "tanh" else core.GeluExact()
    return wire.op(op, call.input("self"))


@aten(ROWS, "aten.leaky_relu")
def leaky_relu(call: Call, wire: NodeWiring) -> OutletId:
    """x, or a share of it below 0"""
    return wire.op(core.LeakyRelu(call.number("negative_slope")), call.input("self"))


@aten(ROWS, "aten.hardtanh")
def hardtanh(call: Call, wire: NodeWiring) -> Wired:
    """x, not below one number and not above another one"""
    return _between(call.tensor("self"), call.value("min_val"), call.value("max_val"))


@aten(ROWS, "aten.hardsigmoid")
def hardsigmoid(call: Call, wire: NodeWiring) -> Wired:
    """A straight line from 0 at -3 to 1 at 3"""
    return _between(call.tensor("self") + 3, 0, 6) * (1 / 6)


@aten(ROWS, "aten.clamp")
def clamp(call: Call, wire: NodeWiring) -> OutletId:
    """x, not below one number or tensor and not above another one, where they are given"""
    x = wire.cast(call.input("self"), call.kind)
    for name, op in (("min", Max()), ("max", Min())):
        x = wire.binary(op, x, call.operand(name, wire, call.kind)) if call.has(name) else x
    return x


def _between(x: Wired, low: float | None, high: float | None) -> Wired:
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


@aten(ROWS, "aten.trunc")
def trunc(call: Call, wire: NodeWiring) -> Wired:
    """To the nearest integer on the way to 0"""
    x = call.tensor("self")
    return towards_zero(x) if x.dtype.is_float() else x


def towards_zero(x: Wired) -> Wired:
    """X without what comes after the point; the sign of 0 is that of x."""
    return (x < 0).where(x.ceil(), x.floor())


@aten(ROWS, "aten.exp2")
def exp2(call: Call, wire: NodeWiring) -> Wired:
    """2 to the power x"""
    return 2 ** call.tensor("self").cast(call.kind)


Composed = Callable[[Call, Wired], Wired]
"""``(call, x) -> y``, in the type of x."""


def composed(*names: str) -> Callable[[Composed], Composed]:
    """Decorator: offer a function of the argument ``self``, made of several operators, as these operators.

    Narrow floats are computed in f32 and rounded once, integers become floats first, as PyTorch does it.
    """

    def offer(function: Composed) -> Composed:
        @aten(ROWS, *names)
        def wire_composed(call: Call, wire: NodeWiring) -> Wired:
            return function(call, call.tensor("self").cast(computed_in(call.kind))).cast(call.kind)

        return function

    return offer


def computed_in(kind: DType) -> DType:
    """The type in which PyTorch computes what is of ``kind``: f32 for narrower floats."""
    return DatumType.F32 if kind.is_float() and kind.itemsize < 4 else kind


@composed("aten.log2", "aten.log10")
def logarithm(call: Call, x: Wired) -> Wired:
    """The logarithm to the base 2 or 10"""
    return x.log() * (1 / log(2 if "log2" in call.name else 10))


@composed("aten.log1p")
def log1p(_: Call, x: Wired) -> Wired:
    """ln(1 + x)"""
    return wire_log1p(x)


def wire_log1p(x: Wired) -> Wired:
    """ln(1 + x), exact also where 1 + x is rounded: ln(u) x / (u - 1), with u = 1 + x (Kahan)."""
    u = x + 1
    left = u - 1
    plain = u.log()
    found = (abs(x) < 0.5).where(plain * (x / left), plain)
    return left.eq(0).where(x, found)


@composed("aten.expm1")
def expm1(_: Call, x: Wired) -> Wired:
    """exp(x) - 1"""
    return wire_expm1(x)


def wire_expm1(x: Wired) -> Wired:
    """exp(x) - 1, exact also near 0: (u - 1) x / ln(u), with u = exp(x) (Kahan)."""
    u = x.exp()
    plain = u - 1
    found = (abs(x) < 0.5).where(plain * (x / u.log()), plain)
    return plain.eq(0).where(x, found)


@composed("aten.elu")
def elu(call: Call, x: Wired) -> Wired:
    """x, or exp(x) - 1 below 0, with a factor for each"""
    alpha, scale, inner = (call.number(name) for name in ("alpha", "scale", "input_scale"))
    below = wire_expm1(times(x.minimum(0), inner))
    return (x > 0).where(times(x, scale), times(below, alpha * scale))


@composed("aten.softplus")
def softplus(call: Call, x: Wired) -> Wired:
    """ln(1 + exp(beta x)) / beta; x itself above a threshold"""
    beta = call.number("beta")
    scaled = times(x, beta)
    smooth = times(wire_log1p(scaled.exp()), 1 / beta)
    return (scaled > call.number("threshold")).where(x, smooth)


@composed("aten.log_sigmoid")
def log_sigmoid(_: Call, x: Wired) -> Wired:
    """min(x, 0) - ln(1 + exp(-|x|))"""
    falling = (-abs(x)).exp()
    return x.minimum(0) - wire_log1p(falling)


def times(x: Wired, factor: float) -> Wired:
    """x, multiplied by a number, which is 1 where nobody gave one."""
    return x if factor == 1 else x * factor


@aten(ROWS, "aten.round.default")
def round_half_to_even(call: Call, wire: NodeWiring) -> OutletId:
    """To the nearest integer, the even one of two"""
    x = call.input("self")
    return wire.op(core.RoundHalfToEven(), x) if wire.dtype(x).is_float() else x


@composed("aten.round.decimals")
def round_decimals(call: Call, x: Wired) -> Wired:
    """To so many places behind the point, or before it"""
    decimals = call.integer("decimals")
    if x.dtype.is_integer():
        return x
    if not decimals:
        return x.round_half_to_even()
    scale = x.like(10.0 ** abs(decimals))
    moved = x * scale if decimals > 0 else x / scale
    rounded = moved.round_half_to_even()
    return rounded / scale if decimals > 0 else rounded * scale


@aten(ROWS, "aten.signbit")
def signbit(call: Call, wire: NodeWiring) -> Wired:
    """Whether an element is negative, -0.0 too. Of what is not a number no sign is told"""
    x = call.tensor("self")
    return is_negative(x.cast(DatumType.U8) if x.dtype.is_bool() else x)


@composed("aten.angle")
def angle(_: Call, x: Wired) -> Wired:
    """Pi of negative numbers, else 0"""
    found = (x < 0).where(x.like(pi), 0)
    return x.is_nan().where(x, found)


@aten(ROWS, "aten.frexp")
def frexp(call: Call, wire: NodeWiring) -> tuple[Wired, Wired]:
    """X = m 2^e, m at least a half and below 1 in magnitude, or 0; of what is not finite, m is x and e is 0"""
    given = call.tensor("self")
    x = given.cast(DatumType.F64)
    size = abs(x)
    plain = (size > 0) & (size < inf)
    size = plain.where(size, 0.5)
    guess = (size.log() * (1 / log(2))).floor()
    first = (guess * 0.5).floor()  # in two steps, so that no power leaves the type
    size = size * 2**-first * 2 ** -(guess - first)
    # the logarithm is rounded: what is left is a little below 1, or between 1 and 2, or 2
    over = (size >= 1).cast(DatumType.F64) + (size >= 2).cast(DatumType.F64)
    mantissa = plain.where(x.sign() * (size * 0.5**over), x)
    return mantissa.cast(given.dtype), plain.where(guess + over, 0).cast(DatumType.I32)


@aten(ROWS, "aten.rrelu_with_noise_functional")
def rrelu(call: Call, wire: NodeWiring) -> OutletId:
    """x, or below 0 the middle one of the shares of it that training draws"""
    if call.flag("training"):
        raise Unsupported("rrelu that draws its slopes", hint="call eval() on the module")
    slope = (call.number("lower") + call.number("upper")) / 2
    return wire.op(core.LeakyRelu(slope), call.input("self"))


@aten(ROWS, "aten.isnan", "aten.isinf")
def tests(call: Call, wire: NodeWiring) -> OutletId:
    """Whether an element is not a number, or infinite; no integer is"""
    x = call.input("self")
    if not wire.dtype(x).is_float():
        return wire.broadcast(wire.const(np.zeros((1,) * wire.rank(x), bool)), wire.shape(x))
    return wire.op(core.IsNan() if "isnan" in call.name else core.IsInf(), x)


@aten(ROWS, "aten.logical_not")
def logical_not(call: Call, wire: NodeWiring) -> OutletId:
    """Whether an element is 0"""
    return wire.op(core.Not(), wire.cast(call.input("self"), DatumType.BOOL))


@aten(ROWS, "aten.bitwise_not")
def bitwise_not(call: Call, wire: NodeWiring) -> OutletId:
    """The other bits; of booleans, the other one"""
    x = call.input("self")
    return wire.op(core.Not() if wire.dtype(x) is DatumType.BOOL else core.BitNot(), x)
