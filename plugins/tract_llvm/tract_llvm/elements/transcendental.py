"""One element of the operators that need a function of `tract_llvm.functions`."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Final

from tract_core.model.op import TypedOp
from tract_core.ops.binary import FloorRem, Pow, Rem
from tract_core.ops.elementwise import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Erf,
    Exp,
    GeluApproximate,
    GeluExact,
    Ln,
    PowConst,
    Sigmoid,
    Silu,
    Sin,
    Sinh,
    Tan,
    Tanh,
)
from tract_core.plugins.tables import Rows
from tract_llvm.elements.expressions import elements
from tract_llvm.functions.erf import erf, normal
from tract_llvm.functions.exponential import exp, sigmoid, tanh
from tract_llvm.functions.hyperbolic import acosh, asinh, atanh, cosh, sinh
from tract_llvm.functions.inverse import acos, asin, atan
from tract_llvm.functions.logarithm import log
from tract_llvm.functions.power import constant_power, integer_power, power
from tract_llvm.functions.remainder import floor_remainder, remainder
from tract_llvm.functions.trigonometric import cos, sin, tan
from tract_llvm.language.values import Value

ROWS = Rows()

_FUNCTIONS: Final[dict[type[TypedOp], Callable[[Value], Value]]] = {
    Exp: exp,
    Ln: log,
    Sin: sin,
    Cos: cos,
    Tan: tan,
    Asin: asin,
    Acos: acos,
    Atan: atan,
    Sinh: sinh,
    Cosh: cosh,
    Tanh: tanh,
    Asinh: asinh,
    Acosh: acosh,
    Atanh: atanh,
    Erf: erf,
    Sigmoid: sigmoid,
}


@elements(ROWS, "f", *_FUNCTIONS)
def function(op: TypedOp, x: Value) -> Value:
    """The function of `_FUNCTIONS`."""
    return _FUNCTIONS[type(op)](x)


@elements(ROWS, "f", Silu)
def silu(op: Silu, x: Value) -> Value:
    """X * sigmoid(x)"""
    return x * sigmoid(x)


@elements(ROWS, "f", GeluExact)
def gelu_exact(op: GeluExact, x: Value) -> Value:
    """x/2 * (1 + erf(x / sqrt(2)))"""
    return x * normal(x)


@elements(ROWS, "f", GeluApproximate)
def gelu_approximate(op: GeluApproximate, x: Value) -> Value:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3))), or with the square of x"""
    power = x * x if op.fast_impl else x * x * x
    return x * 0.5 * (1.0 + tanh((x + power * 0.044715) * sqrt(2 / pi)))


@elements(ROWS, "f", PowConst)
def pow_const(op: PowConst, x: Value) -> Value:
    """X ** exponent"""
    return constant_power(x, op.exponent)


@elements(ROWS, "fiu", Pow)
def pow_(op: Pow, a: Value, b: Value) -> Value:
    """A ** b"""
    return power(a, b) if a.type.kind == "f" else integer_power(a, b)


@elements(ROWS, "fiu", Rem)
def rem(op: Rem, a: Value, b: Value) -> Value:
    """The remainder, with the sign of a."""
    return remainder(a, b)


@elements(ROWS, "fiu", FloorRem)
def floor_rem(op: FloorRem, a: Value, b: Value) -> Value:
    """The remainder, with the sign of b."""
    return floor_remainder(a, b)
