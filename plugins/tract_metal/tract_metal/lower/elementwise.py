"""Functions of each element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import mlx.core as mx

from tract_core.ops.elementwise import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    BitNot,
    Ceil,
    Cos,
    Cosh,
    ElementWise,
    Erf,
    Exp,
    Floor,
    GeluApproximate,
    GeluExact,
    HardSwish,
    IsInf,
    IsNan,
    LeakyRelu,
    Ln,
    Neg,
    Not,
    PowConst,
    Recip,
    Round,
    RoundHalfToEven,
    Rsqrt,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Sinh,
    Sqrt,
    Square,
    Tan,
    Tanh,
)
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.site import Computed, Site, by_element
from tract_metal.table import METAL

ROWS = Rows()

Function = Callable[[mx.array], mx.array]


def _round_half_away(x: mx.array) -> mx.array:
    whole = _truncated(x)
    return mx.where(mx.abs(x - whole) >= 0.5, whole + mx.sign(x), whole)


def _truncated(x: mx.array) -> mx.array:
    return mx.where(x < 0, mx.ceil(x), mx.floor(x))


def _sigmoid(x: mx.array) -> mx.array:
    tail = mx.exp(-mx.abs(x))  # never overflows
    return mx.where(x >= 0, mx.ones_like(tail), tail) / (1 + tail)


def _hard_swish(x: mx.array) -> mx.array:
    return x * mx.clip(x / 6 + 0.5, 0, 1)


def _gelu(x: mx.array) -> mx.array:
    return x / 2 * (1 + mx.erf(x / math.sqrt(2)))


_MEANING: Final[Mapping[type[ElementWise], Function]] = {
    Exp: mx.exp,
    Ln: mx.log,
    Sqrt: mx.sqrt,
    Recip: lambda x: 1 / x,
    Rsqrt: lambda x: 1 / mx.sqrt(x),
    Ceil: mx.ceil,
    Floor: mx.floor,
    Round: _round_half_away,
    RoundHalfToEven: mx.round,
    Cos: mx.cos,
    Sin: mx.sin,
    Tan: mx.tan,
    Acos: mx.arccos,
    Asin: mx.arcsin,
    Atan: mx.arctan,
    Cosh: mx.cosh,
    Sinh: mx.sinh,
    Tanh: mx.tanh,
    Acosh: mx.arccosh,
    Asinh: mx.arcsinh,
    Atanh: mx.arctanh,
    Erf: mx.erf,
    Sigmoid: _sigmoid,
    HardSwish: _hard_swish,
    Silu: lambda x: x * _sigmoid(x),
    GeluExact: _gelu,
    Abs: mx.abs,
    Square: lambda x: x * x,
    Neg: mx.negative,
    Sign: mx.sign,
}


def in_wide(function: Function) -> Computed:
    """A function that is computed in f32 for narrower floats, and rounded once."""
    return by_element(lambda x: function(wide(x)).astype(x.dtype))


@ROWS.row(METAL, *_MEANING)
def lower_function(op: ElementWise, site: Site) -> Computed:
    """The function of `_MEANING`."""
    return in_wide(_MEANING[type(op)])


@ROWS.row(METAL, PowConst)
def lower_power(op: PowConst, site: Site) -> Computed:
    """X ** exponent"""
    return in_wide(lambda x: mx.power(x, mx.array(op.exponent, x.dtype)))


@ROWS.row(METAL, LeakyRelu)
def lower_leaky(op: LeakyRelu, site: Site) -> Computed:
    """x, or alpha * x below zero"""
    return in_wide(lambda x: mx.where(x >= 0, x, x * op.alpha))


@ROWS.row(METAL, GeluApproximate)
def lower_gelu(op: GeluApproximate, site: Site) -> Computed:
    """The tanh form of GELU."""
    return in_wide(partial(_gelu_by_tanh, power=2 if op.fast_impl else 3))


def _gelu_by_tanh(x: mx.array, power: int) -> mx.array:
    powered = x * x if power == 2 else x * x * x
    return x / 2 * (1 + mx.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * powered)))


@ROWS.row(METAL, IsNan)
def lower_is_nan(op: IsNan, site: Site) -> Computed:
    """Whether x is not a number."""
    return by_element(mx.isnan)


@ROWS.row(METAL, IsInf)
def lower_is_inf(op: IsInf, site: Site) -> Computed:
    """Infinite, and of a sign asked for."""
    signs = {(True, True): mx.isinf, (True, False): mx.isposinf, (False, True): mx.isneginf}
    none: Callable[..., Any] = partial(mx.zeros_like)
    return by_element(signs.get((op.detect_positive, op.detect_negative), lambda x: none(x).astype(mx.bool_)))


@ROWS.row(METAL, Not)
def lower_not(op: Not, site: Site) -> Computed:
    """Not x"""
    return by_element(mx.logical_not)


@ROWS.row(METAL, BitNot)
def lower_bit_not(op: BitNot, site: Site) -> Computed:
    """Every bit inverted"""
    return by_element(mx.bitwise_invert)
