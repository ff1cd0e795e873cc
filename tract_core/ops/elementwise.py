"""Operators that compute each output element from the input element in the same place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, wide
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class ElementWise(TypedOp):
    """Base of the family: one input, one output of the same type and shape, floats only."""

    by_element: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError for anything but floats."""
        (x,) = arity(self, inputs, 1)
        return (float_type(self, x),)


@frozen
class Function(ElementWise):
    """A function without parameters.

    Classes derived from it are frozen dataclasses by that: to make each one anew takes longer than all the rest here.
    """


@frozen
class NumericElementWise(ElementWise):
    """Those that also take integers (and complex numbers)."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError when it is not a number, or a quantised one."""
        (x,) = arity(self, inputs, 1)
        if not x.datum_type.is_number() or x.datum_type.is_quantized():
            raise FactError(f"{self.name} wants plain numbers, found {x}")
        return (x.without_value(),)


class FloatTest(ElementWise):
    """Those that ask a question of each float, and answer with booleans."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Booleans in the input's shape."""
        (x,) = arity(self, inputs, 1)
        return (float_type(self, x).with_type(DatumType.BOOL),)


class Exp(Function):
    """e to the power x"""


class Ln(Function):
    """The natural logarithm of x."""


class Sqrt(Function):
    """The square root of x."""


class Recip(Function):
    """1/x"""


class Rsqrt(Function):
    """1/sqrt(x)"""


class Ceil(Function):
    """The least integer that is not below x."""


class Floor(Function):
    """The greatest integer that is not above x."""


class Round(Function):
    """The nearest integer, halves away from zero."""


class RoundHalfToEven(Function):
    """The nearest integer, halves to the even one."""


class Cos(Function):
    """cos(x)"""


class Sin(Function):
    """sin(x)"""


class Tan(Function):
    """tan(x)"""


class Acos(Function):
    """The inverse of cos."""


class Asin(Function):
    """The inverse of sin."""


class Atan(Function):
    """The inverse of tan."""


class Cosh(Function):
    """cosh(x)"""


class Sinh(Function):
    """sinh(x)"""


class Tanh(Function):
    """tanh(x)"""


class Acosh(Function):
    """The inverse of cosh."""


class Asinh(Function):
    """The inverse of sinh."""


class Atanh(Function):
    """The inverse of tanh."""


class Erf(Function):
    """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""


class Sigmoid(Function):
    """1/(1 + exp(-x))"""


class HardSwish(Function):
    """x * clip(x/6 + 1/2, 0, 1)"""


class Silu(Function):
    """x * sigmoid(x)"""


class GeluExact(Function):
    """x/2 * (1 + erf(x/sqrt(2)))"""


class Abs(NumericElementWise):
    """The magnitude of x."""


class Square(NumericElementWise):
    """x*x"""


class Neg(NumericElementWise):
    """-x"""


class Sign(NumericElementWise):
    """-1, 0 or 1"""


@frozen
class IsNan(FloatTest):
    """Whether x is not a number."""


@frozen
class PowConst(ElementWise):
    """x to a power that is part of the model. ``exponent``: that power."""

    exponent: float


@frozen
class LeakyRelu(ElementWise):
    """x where x is positive, else ``alpha * x``."""

    alpha: float


@frozen
class GeluApproximate(ElementWise):
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3))); with ``fast_impl``, the square of x instead of its cube."""

    fast_impl: bool = False


@frozen
class IsInf(FloatTest):
    """Whether x is infinite, of the signs asked for. ``detect_positive``, ``detect_negative``: these signs."""

    detect_positive: bool = True
    detect_negative: bool = True


class Not(Function):
    """Logical not, of booleans."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError for anything but booleans."""
        (x,) = arity(self, inputs, 1)
        if not x.datum_type.is_bool():
            raise FactError(f"Not wants booleans, found {x}")
        return (x.without_value(),)


class BitNot(Function):
    """Every bit inverted, of integers."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError for anything but integers."""
        (x,) = arity(self, inputs, 1)
        if not x.datum_type.is_integer():
            raise FactError(f"BitNot wants integers, found {x}")
        return (x.without_value(),)


_erf = np.frompyfunc(math.erf, 1, 1)


def _error_function(x: Array) -> Array:
    return np.asarray(_erf(x.astype(np.float64))).astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    tail = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1, tail) / (1 + tail)


def _round_half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _gelu_exact(x: Array) -> Array:
    return x / 2 * (1 + _error_function(x / math.sqrt(2)))


_MEANING: dict[type[ElementWise], Callable[[Array], Array]] = {
    Exp: np.exp,
    Ln: np.log,
    Sqrt: np.sqrt,
    Recip: lambda x: 1 / x,
    Rsqrt: lambda x: 1 / np.sqrt(x),
    Ceil: np.ceil,
    Floor: np.floor,
    Round: _round_half_away,
    RoundHalfToEven: np.rint,
    Cos: np.cos,
    Sin: np.sin,
    Tan: np.tan,
    Acos: np.arccos,
    Asin: np.arcsin,
    Atan: np.arctan,
    Cosh: np.cosh,
    Sinh: np.sinh,
    Tanh: np.tanh,
    Acosh: np.arccosh,
    Asinh: np.arcsinh,
    Atanh: np.arctanh,
    Erf: _error_function,
    Sigmoid: _sigmoid,
    HardSwish: lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    Silu: lambda x: x * _sigmoid(x),
    GeluExact: _gelu_exact,
    Abs: np.abs,
    Square: np.square,
    Neg: np.negative,
    Sign: np.sign,
    IsNan: np.isnan,
}


def power(a: Array, b: Array) -> Array:
    """``pow`` of C: NumPy takes a root where all exponents are one half, but of -inf and -0.0 the power is no root."""
    found = np.power(a, b)
    if a.dtype.kind != "f" or not np.any(b == 0.5):
        return found
    return np.where((b == 0.5) & ((a == -np.inf) | (a == 0)), np.abs(a), found)


def _in_wide(function: Callable[[Array], Array], x: Array) -> Array:
    """``function`` computed in f32 for narrower floats, and rounded once."""
    return np.asarray(function(x.astype(wide(x.dtype), copy=False)))


@ROWS.row(REFERENCE, *_MEANING)
def reference(op: ElementWise, x: Array) -> Array:
    """The function of `_MEANING`, element by element."""
    result = _in_wide(_MEANING[type(op)], x)
    return result if isinstance(op, FloatTest) else result.astype(x.dtype, copy=False)


@ROWS.row(REFERENCE, PowConst)
def pow_const(op: PowConst, x: Array) -> Array:
    """X ** exponent"""
    return _in_wide(lambda wide_x: power(wide_x, wide_x.dtype.type(op.exponent)), x).astype(x.dtype)


@ROWS.row(REFERENCE, LeakyRelu)
def leaky_relu(op: LeakyRelu, x: Array) -> Array:
    """x, or alpha * x below zero"""
    return _in_wide(lambda wide_x: np.where(wide_x >= 0, wide_x, wide_x * op.alpha), x).astype(x.dtype)


@ROWS.row(REFERENCE, GeluApproximate)
def gelu_approximate(op: GeluApproximate, x: Array) -> Array:
    """The tanh form of GELU."""
    power = 2 if op.fast_impl else 3

    def gelu(wide_x: Array) -> Array:
        return wide_x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide_x + 0.044715 * wide_x**power)))

    return _in_wide(gelu, x).astype(x.dtype)


@ROWS.row(REFERENCE, IsInf)
def is_inf(op: IsInf, x: Array) -> Array:
    """Infinite, and of a sign asked for."""
    wanted = np.where(x > 0, op.detect_positive, op.detect_negative)
    return np.asarray(np.isinf(x.astype(wide(x.dtype))) & wanted)


@ROWS.row(REFERENCE, Not)
def logical_not(op: Not, x: Array) -> Array:
    """Not x"""
    return np.asarray(np.logical_not(x))


@ROWS.row(REFERENCE, BitNot)
def bit_not(op: BitNot, x: Array) -> Array:
    """Every bit inverted"""
    return np.asarray(np.invert(x)).astype(x.dtype, copy=False)  # NumPy widens integers of less than a byte


@ROWS.row(SYMBOLIC, Neg, Square, Not)
def symbolic(op: ElementWise, x: Array) -> Any:
    """Arithmetic on sizes; what is compared is 1 where it holds, else 0."""
    return -x if isinstance(op, Neg) else 1 - x if isinstance(op, Not) else x * x


@ROWS.row(COST, ElementWise)
def cost(op: ElementWise, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per element; divisions and transcendental functions count as DIV."""
    kind = "FMA" if isinstance(op, (Abs, Square, Neg, LeakyRelu, Not, BitNot, FloatTest, Sign)) else "DIV"
    return {f"{kind}({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(AXES, ElementWise)
def axes(op: ElementWise, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
