"""Functions of two elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import mlx.core as mx

from tract_core.ops.binary import (
    Add,
    And,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Comparison,
    Div,
    Eq,
    FloorRem,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Pow,
    Rem,
    ShiftLeft,
    ShiftRight,
    Sub,
    SubF,
    Xor,
)
from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.site import Computed, Site, by_element
from tract_metal.table import METAL

ROWS = Rows()

FLOATS: Final = (mx.float16, mx.bfloat16, mx.float32, mx.complex64)
UNSIGNED: Final = (mx.uint8, mx.uint16, mx.uint32, mx.uint64)


def divided(a: mx.array, b: mx.array) -> mx.array:
    """Integers towards zero, and by zero 0. The smallest one by -1, which processors refuse, is itself."""
    if a.dtype in FLOATS:
        return a / b
    if a.dtype in UNSIGNED:
        return mx.where(b == 0, mx.zeros_like(a), mx.floor_divide(a, mx.maximum(b, 1)))
    plain = mx.where((b == 0) | (b == -1), mx.ones_like(b), b)
    quotient = mx.floor_divide(a, plain)
    rest = a - quotient * plain  # with the sign of b where MLX divided towards minus infinity, else with that of a
    towards_zero = mx.where((rest != 0) & ((rest < 0) != (a < 0)), quotient + 1, quotient)
    return mx.where(b == 0, mx.zeros_like(a), mx.where(b == -1, -a, towards_zero))


def remainder(a: mx.array, b: mx.array) -> mx.array:
    """That of `divided`, with the sign of a; of floats as ``fmod`` of C."""
    if a.dtype not in FLOATS:
        return mx.where(b == 0, mx.zeros_like(a), a - divided(a, b) * b)
    rest = mx.remainder(mx.abs(a), mx.abs(b))
    found = mx.where(mx.isinf(b) & mx.isfinite(a), mx.abs(a), rest)
    return mx.where(is_negative(a), -found, found)


def floor_remainder(a: mx.array, b: mx.array) -> mx.array:
    """With the sign of b."""
    rest = remainder(a, b)
    moved = mx.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return mx.where(rest == 0, mx.where(b < 0, -mx.zeros_like(a), mx.zeros_like(a)), moved) if _float(a) else moved


def _float(a: mx.array) -> bool:
    return a.dtype in FLOATS


def is_negative(a: mx.array) -> mx.array:
    """Whether the sign bit is set, of zeros too: MLX's kernels need not tell one zero from the other."""
    return mx.view(a.astype(mx.float32), mx.int32) < 0


def _smallest(a: mx.array, b: mx.array) -> mx.array:
    if not _float(a):
        return mx.minimum(a, b)
    less = mx.where((a < b) | ((a == b) & is_negative(a)), a, b)
    return mx.where(mx.isnan(a), a, mx.where(mx.isnan(b), b, less))


def largest(a: mx.array, b: mx.array) -> mx.array:
    """The larger one; of two zeros 0.0, and not a number if either is not."""
    if not _float(a):
        return mx.maximum(a, b)
    more = mx.where((a > b) | ((a == b) & ~is_negative(a)), a, b)
    return mx.where(mx.isnan(a), a, mx.where(mx.isnan(b), b, more))


def _power(a: mx.array, b: mx.array) -> mx.array:
    if _float(a) or a.dtype in UNSIGNED:
        return mx.power(a, b)
    one = mx.where((b & 1) == 0, mx.ones_like(a), a)
    inverse = mx.where(mx.abs(a) == 1, one, mx.zeros_like(a))
    return mx.where(b < 0, inverse, mx.power(a, mx.maximum(b, 0)))


def _shifted_left(a: mx.array, b: mx.array) -> mx.array:
    return mx.where(_in_width(a, b), mx.left_shift(a, b), mx.zeros_like(a))


def _shifted_right(a: mx.array, b: mx.array) -> mx.array:
    gone = mx.zeros_like(a) if a.dtype in UNSIGNED else mx.where(a < 0, -mx.ones_like(a), mx.zeros_like(a))
    return mx.where(_in_width(a, b), mx.right_shift(a, b), gone)


def _in_width(a: mx.array, b: mx.array) -> mx.array:
    return (b >= 0) & (b < a.dtype.size * 8)


_MEANING: Final[Mapping[type[Binary], Callable[[mx.array, mx.array], mx.array]]] = {
    Add: mx.add,
    Sub: mx.subtract,
    SubF: lambda a, b: mx.subtract(b, a),
    Mul: mx.multiply,
    Div: divided,
    Rem: remainder,
    FloorRem: floor_remainder,
    Min: _smallest,
    Max: largest,
    Pow: _power,
    ShiftLeft: _shifted_left,
    ShiftRight: _shifted_right,
    And: mx.logical_and,
    Or: mx.logical_or,
    Xor: mx.not_equal,
    BitAnd: mx.bitwise_and,
    BitOr: mx.bitwise_or,
    BitXor: mx.bitwise_xor,
    Eq: mx.equal,
    Ne: mx.not_equal,
    Lt: mx.less,
    Gt: mx.greater,
    Le: mx.less_equal,
    Ge: mx.greater_equal,
}


@ROWS.row(METAL, *_MEANING)
def lower_binary(op: Binary, site: Site) -> Computed:
    """The function of `_MEANING`; narrow floats are computed in f32, and rounded once."""
    function = _MEANING[type(op)]
    if isinstance(op, Comparison):
        return by_element(function)
    return by_element(lambda a, b: function(wide(a), wide(b)).astype(a.dtype))


@ROWS.row(METAL, Iff)
def lower_iff(op: Iff, site: Site) -> Computed:
    """The one or the other."""
    return by_element(mx.where)
