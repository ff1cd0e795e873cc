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
from tract_core.ops.binary import Add, And, Div, Eq, Ge, Gt, Lt, Max, Min, Mul, Or, Pow, Sub
from tract_core.ops.node_wiring import NodeWiring
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
        return wire.op(op, wire.cast(call.tensor("self"), call.kind))

    return wire_floats


def _of_all(op: TypedOp) -> AtenFn:
    def wire_all(call: Call, wire: NodeWiring) -> OutletId:
        return wire.op(op, call.tensor("self"))

    return wire_all


def _rounded(op: TypedOp) -> AtenFn:
    def wire_rounded(call: Call, wire: NodeWiring) -> OutletId:
        x = call.tensor("self")
        return wire.op(op, x) if wire.dtype(x).is_float() else x

    return wire_rounded


for _names, _wired in ((_FLOATS, _of_floats), (_SAME, _of_all), (_ROUNDING, _rounded)):
    for _name, _op in _names.items():
        ROWS.add(ATEN, f"aten.{_name}", _wired(_op))


@aten(ROWS, "aten.sign", "aten.sgn")
def sign(call: Call, wire: NodeWiring) -> OutletId:
    """-1, 0 or 1; 0 of what is not a number"""
    x = call.tensor("self")
    if wire.dtype(x).is_bool():
        return x
    found = wire.op(core.Sign(), x)
    return wire.select(wire.op(core.IsNan(), x), wire.scalar(0, x), found) if wire.dtype(x).is_float() else found


@aten(ROWS, "aten.relu")
def relu(call: Call, wire: NodeWiring) -> OutletId:
    """max(x, 0)"""
    x = call.tensor("self")
    return wire.op(Max(), x, wire.scalar(0, x))


@aten(ROWS, "aten.gelu")
def gelu(call: Call, wire: NodeWiring) -> OutletId:
    """X times the share of normal numbers below x, or the usual approximation of it by tanh"""
    op = core.GeluApproximate() if call.value("approximate") == "tanh" else core.GeluExact()
    return wire.op(op, call.tensor("self"))


@aten(ROWS, "aten.leaky_relu")
def leaky_relu(call: Call, wire: NodeWiring) -> OutletId:
    """x, or a share of it below 0"""
    return wire.op(core.LeakyRelu(float(call.value("negative_slope"))), call.tensor("self"))


@aten(ROWS, "aten.hardtanh")
def hardtanh(call: Call, wire: NodeWiring) -> OutletId:
    """x, not below one number and not above another one"""
    return _between(wire, call.tensor("self"), call.value("min_val"), call.value("max_val"))


@aten(ROWS, "aten.hardsigmoid")
def hardsigmoid(call: Call, wire: NodeWiring) -> OutletId:
    """A straight line from 0 at -3 to 1 at 3"""
    x = call.tensor("self")
    line = _between(wire, wire.op(Add(), x, wire.scalar(3, x)), 0, 6)
    return wire.op(Mul(), line, wire.scalar(1 / 6, x))


@aten(ROWS, "aten.clamp")
def clamp(call: Call, wire: NodeWiring) -> OutletId:
    """x, not below one number or tensor and not above another one, where they are given"""
    x = wire.cast(call.tensor("self"), call.kind)
    for name, op in (("min", Max()), ("max", Min())):
        x = wire.binary(op, x, call.operand(name, wire, call.kind)) if call.has(name) else x
    return x


def _between(wire: NodeWiring, x: OutletId, low: float | None, high: float | None) -> OutletId:
    x = x if low is None else wire.op(Max(), x, wire.scalar(low, x))
    return x if high is None else wire.op(Min(), x, wire.scalar(high, x))


@aten(ROWS, "aten.trunc")
def trunc(call: Call, wire: NodeWiring) -> OutletId:
    """To the nearest integer on the way to 0"""
    x = call.tensor("self")
    return towards_zero(wire, x) if wire.dtype(x).is_float() else x


def towards_zero(wire: NodeWiring, x: OutletId) -> OutletId:
    """X without what comes after the point; the sign of 0 is that of x."""
    return wire.select(wire.op(Lt(), x, wire.scalar(0, x)), wire.op(core.Ceil(), x), wire.op(core.Floor(), x))


@aten(ROWS, "aten.exp2")
def exp2(call: Call, wire: NodeWiring) -> OutletId:
    """2 to the power x"""
    x = wire.cast(call.tensor("self"), call.kind)
    return wire.binary(Pow(), wire.scalar(2, x), x)


Composed = Callable[[Call, NodeWiring, OutletId], OutletId]
"""``(call, wire, x) -> outlet``, in the type of x."""


def composed(*names: str) -> Callable[[Composed], Composed]:
    """Decorator: offer a function of the argument ``self``, made of several operators, as these operators.

    Narrow floats are computed in f32 and rounded once, integers become floats first, as PyTorch does it.
    """

    def offer(function: Composed) -> Composed:
        @aten(ROWS, *names)
        def wire_composed(call: Call, wire: NodeWiring) -> OutletId:
            return wire.cast(function(call, wire, wire.cast(call.tensor("self"), computed_in(call.kind))), call.kind)

        return function

    return offer


def computed_in(kind: DType) -> DType:
    """The type in which PyTorch computes what is of ``kind``: f32 for narrower floats."""
    return DatumType.F32 if kind.is_float() and kind.itemsize < 4 else kind


@composed("aten.log2", "aten.log10")
def logarithm(call: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """The logarithm to the base 2 or 10"""
    return times(wire, wire.op(core.Ln(), x), 1 / log(2 if "log2" in call.name else 10))


@composed("aten.log1p")
def log1p(_: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """ln(1 + x)"""
    return wire_log1p(wire, x)


def wire_log1p(wire: NodeWiring, x: OutletId) -> OutletId:
    """ln(1 + x), exact also where 1 + x is rounded: ln(u) x / (u - 1), with u = 1 + x (Kahan)."""
    u = wire.op(Add(), x, wire.scalar(1, x))
    left = wire.op(Sub(), u, wire.scalar(1, x))
    plain = wire.op(core.Ln(), u)
    near = wire.op(Lt(), wire.op(core.Abs(), x), wire.scalar(0.5, x))
    mended = wire.op(Mul(), plain, wire.op(Div(), x, left))
    is_lost = wire.op(Eq(), left, wire.scalar(0, x))
    return wire.select(is_lost, x, wire.select(near, mended, plain))


@composed("aten.expm1")
def expm1(_: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """exp(x) - 1"""
    return wire_expm1(wire, x)


def wire_expm1(wire: NodeWiring, x: OutletId) -> OutletId:
    """exp(x) - 1, exact also near 0: (u - 1) x / ln(u), with u = exp(x) (Kahan)."""
    u = wire.op(core.Exp(), x)
    plain = wire.op(Sub(), u, wire.scalar(1, x))
    near = wire.op(Lt(), wire.op(core.Abs(), x), wire.scalar(0.5, x))
    mended = wire.op(Mul(), plain, wire.op(Div(), x, wire.op(core.Ln(), u)))
    is_lost = wire.op(Eq(), plain, wire.scalar(0, x))
    return wire.select(is_lost, x, wire.select(near, mended, plain))


@composed("aten.elu")
def elu(call: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """x, or exp(x) - 1 below 0, with a factor for each"""
    alpha, scale, inner = (float(call.value(name)) for name in ("alpha", "scale", "input_scale"))
    below = wire_expm1(wire, times(wire, wire.op(Min(), x, wire.scalar(0, x)), inner))
    return wire.select(wire.op(Gt(), x, wire.scalar(0, x)), times(wire, x, scale), times(wire, below, alpha * scale))


@composed("aten.softplus")
def softplus(call: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """ln(1 + exp(beta x)) / beta; x itself above a threshold"""
    beta = float(call.value("beta"))
    scaled = times(wire, x, beta)
    smooth = times(wire, wire_log1p(wire, wire.op(core.Exp(), scaled)), 1 / beta)
    return wire.select(wire.op(Gt(), scaled, wire.scalar(float(call.value("threshold")), x)), x, smooth)


@composed("aten.log_sigmoid")
def log_sigmoid(_: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """min(x, 0) - ln(1 + exp(-|x|))"""
    falling = wire.op(core.Exp(), wire.op(core.Neg(), wire.op(core.Abs(), x)))
    return wire.op(Sub(), wire.op(Min(), x, wire.scalar(0, x)), wire_log1p(wire, falling))


def times(wire: NodeWiring, x: OutletId, factor: float) -> OutletId:
    """x, multiplied by a number."""
    return x if factor == 1 else wire.op(Mul(), x, wire.scalar(factor, x))


@aten(ROWS, "aten.round.default")
def round_half_to_even(call: Call, wire: NodeWiring) -> OutletId:
    """To the nearest integer, the even one of two"""
    x = call.tensor("self")
    return wire.op(core.RoundHalfToEven(), x) if wire.dtype(x).is_float() else x


@composed("aten.round.decimals")
def round_decimals(call: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """To so many places behind the point, or before it"""
    decimals = int(call.value("decimals"))
    if not decimals or wire.dtype(x).is_integer():
        return x if wire.dtype(x).is_integer() else wire.op(core.RoundHalfToEven(), x)
    scale = wire.scalar(10.0 ** abs(decimals), x)
    there, back = (Mul(), Div()) if decimals > 0 else (Div(), Mul())
    return wire.op(back, wire.op(core.RoundHalfToEven(), wire.op(there, x, scale)), scale)


@aten(ROWS, "aten.signbit")
def signbit(call: Call, wire: NodeWiring) -> OutletId:
    """Whether an element is negative, -0.0 too. Of what is not a number no sign is told"""
    x = call.tensor("self")
    return is_negative(wire, wire.cast(x, DatumType.U8) if wire.dtype(x).is_bool() else x)


def is_negative(wire: NodeWiring, x: OutletId) -> OutletId:
    """Whether an element of numbers is negative, or -0.0."""
    below = wire.op(Lt(), x, wire.scalar(0, x))
    if not wire.dtype(x).is_float():
        return below
    inverse = wire.op(core.Recip(), x)
    return wire.op(Or(), below, wire.op(Lt(), inverse, wire.scalar(0, x)))


@composed("aten.angle")
def angle(_: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    """Pi of negative numbers, else 0"""
    found = wire.select(wire.op(Lt(), x, wire.scalar(0, x)), wire.scalar(pi, x), wire.scalar(0, x))
    return wire.select(wire.op(core.IsNan(), x), x, found)


@aten(ROWS, "aten.frexp")
def frexp(call: Call, wire: NodeWiring) -> tuple[OutletId, OutletId]:
    """X = m 2^e, m at least a half and below 1 in magnitude, or 0; of what is not finite, m is x and e is 0"""
    kind = wire.dtype(call.tensor("self"))
    x = wire.cast(call.tensor("self"), DatumType.F64)
    size, zero, half = wire.op(core.Abs(), x), wire.scalar(0, x), wire.scalar(0.5, x)
    plain = wire.op(And(), wire.op(Gt(), size, zero), wire.op(Lt(), size, wire.scalar(inf, x)))
    size = wire.select(plain, size, half)
    guess = wire.op(core.Floor(), times(wire, wire.op(core.Ln(), size), 1 / log(2)))
    first = wire.op(core.Floor(), times(wire, guess, 0.5))  # in two steps, so that no power leaves the type
    powers = (wire.op(Pow(), wire.scalar(2, x), wire.op(core.Neg(), e)) for e in (first, wire.op(Sub(), guess, first)))
    for power in powers:
        size = wire.op(Mul(), size, power)
    # the logarithm is rounded: what is left is a little below 1, or between 1 and 2, or 2
    over = [wire.cast(wire.op(Ge(), size, wire.scalar(bound, x)), DatumType.F64) for bound in (1, 2)]
    exponent = wire.op(Add(), guess, wire.op(Add(), *over))
    size = wire.op(Mul(), size, wire.op(Pow(), half, wire.op(Add(), *over)))
    mantissa = wire.select(plain, wire.op(Mul(), wire.op(core.Sign(), x), size), x)
    return wire.cast(mantissa, kind), wire.cast(wire.select(plain, exponent, zero), DatumType.I32)


@aten(ROWS, "aten.rrelu_with_noise_functional")
def rrelu(call: Call, wire: NodeWiring) -> OutletId:
    """x, or below 0 the middle one of the shares of it that training draws"""
    if call.value("training"):
        raise Unsupported("rrelu that draws its slopes", hint="call eval() on the module")
    slope = (float(call.value("lower")) + float(call.value("upper"))) / 2
    return wire.op(core.LeakyRelu(slope), call.tensor("self"))


@aten(ROWS, "aten.isnan", "aten.isinf")
def tests(call: Call, wire: NodeWiring) -> OutletId:
    """Whether an element is not a number, or infinite; no integer is"""
    x = call.tensor("self")
    if not wire.dtype(x).is_float():
        return wire.broadcast(wire.const(np.zeros((1,) * wire.rank(x), bool)), wire.shape(x))
    return wire.op(core.IsNan() if "isnan" in call.name else core.IsInf(), x)


@aten(ROWS, "aten.logical_not")
def logical_not(call: Call, wire: NodeWiring) -> OutletId:
    """Whether an element is 0"""
    return wire.op(core.Not(), wire.cast(call.tensor("self"), DatumType.BOOL))


@aten(ROWS, "aten.bitwise_not")
def bitwise_not(call: Call, wire: NodeWiring) -> OutletId:
    """The other bits; of booleans, the other one"""
    x = call.tensor("self")
    return wire.op(core.Not() if wire.dtype(x) is DatumType.BOOL else core.BitNot(), x)
