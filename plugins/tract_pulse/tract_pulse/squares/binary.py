"""Arithmetic on positions, comparisons of them, and what is made of the answers."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.ops.binary import (
    Add,
    And,
    Binary,
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
    Rem,
    ShiftLeft,
    ShiftRight,
    Sub,
    SubF,
)
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import LARGEST_UNIT, View
from tract_pulse.bands.far import EITHER, FILL, UNKNOWN, Far, choose, exactly, from_there, product
from tract_pulse.registry import BAND
from tract_pulse.squares.values import of_known_numbers

ROWS = Rows()

_NEVER: Final = np.full((1, 1), np.inf)


@ROWS.row(BAND, Binary)
def band(op: Binary, view: View) -> Far:
    """A number that is known, where both inputs are."""
    return of_known_numbers(op, view)


@ROWS.row(BAND, Add)
def band_of_add(op: Add, view: View) -> Far:
    """A + b"""
    return _sum(*view.inputs, scores=view.output.datum_type.is_float())


@ROWS.row(BAND, Sub)
def band_of_sub(op: Sub, view: View) -> Far:
    """A - b"""
    return _sum(view.inputs[0], view.inputs[1].times(-1.0), scores=view.output.datum_type.is_float())


@ROWS.row(BAND, SubF)
def band_of_subf(op: SubF, view: View) -> Far:
    """B - a"""
    return _sum(view.inputs[1], view.inputs[0].times(-1.0), scores=view.output.datum_type.is_float())


def _sum(a: Far, b: Far, *, scores: bool) -> Far:
    """What a mask takes out of ``scores`` stays out, whatever is added to it: that is taken to be no infinity."""
    cases = [
        (
            scores & one.is_flat & (one.high <= FILL) & ~other.is_bounded,
            Far.between(-np.inf, one.high, one.beyond),
        )
        for one, other in ((a, b), (b, a))
    ]
    return choose(cases, a.plus(b))


def _difference(a: Far, b: Far) -> Far:
    return a.plus(b.times(-1.0))


@ROWS.row(BAND, Mul)
def band_of_mul(op: Mul, view: View) -> Far:
    """What is 0 stays 0, whatever it is multiplied by: that is taken to be a number, and not infinite."""
    a, b = view.inputs
    zeros = [(one.is_all(0), exactly(0, one.beyond)) for one in (a, b)]
    scaled = [
        (one.is_known & one.is_bounded, from_there(other.times(np.where(one.is_bounded, one.low, 0.0)), one.beyond))
        for one, other in ((a, b), (b, a))
    ]
    return choose([*zeros, *scaled], product(a, b))


@ROWS.row(BAND, Div)
def band_of_div(op: Div, view: View) -> Far:
    """By a number. Integers are divided towards zero, which is down or up once the sign is known."""
    a, b = view.inputs
    known = b.is_known & b.is_bounded & (b.low != 0)
    quotient = from_there(_quotient(a, np.where(known, b.low, 1.0)), b.beyond)
    zero = a.is_all(0) & view.output.datum_type.is_float()
    if view.output.datum_type.is_integer():
        quotient = towards_zero(view, quotient)
    return choose([(known, quotient), (zero, exactly(0, a.beyond))], UNKNOWN)


@ROWS.row(BAND, ShiftLeft)
def band_of_shift_left(op: ShiftLeft, view: View) -> Far:
    """Times a power of two."""
    a, b = view.inputs
    known = _is_shift(b)
    return choose([(known, from_there(a.times(np.exp2(np.where(known, b.low, 0.0))), b.beyond))], UNKNOWN)


@ROWS.row(BAND, ShiftRight)
def band_of_shift_right(op: ShiftRight, view: View) -> Far:
    """Divided by a power of two, rounded down."""
    a, b = view.inputs
    known = _is_shift(b)
    quotient = view.rounded(_quotient(a, np.exp2(np.where(known, b.low, 0.0))), down=True, up=False)
    return choose([(known, from_there(quotient, b.beyond))], UNKNOWN)


def _is_shift(far: Far) -> Array:
    """Where it is a number of bits, of as few as positions take."""
    return far.is_known & (far.low >= 0) & (far.low < 32)


def _quotient(a: Far, divisor: Array) -> Far:
    """Divided, not multiplied by the inverse: so what divides evenly gives an integer."""
    ends = a.low / divisor, a.high / divisor
    return Far.between(np.minimum(*ends), np.maximum(*ends), a.beyond, a.per_block / divisor, a.per_distance / divisor)


def towards_zero(view: View, far: Far) -> Far:
    """Cut off at the point."""
    above, below = far.at_least(0), far.times(-1.0).at_least(0)
    return choose(
        [
            (_ever(above), from_there(view.rounded(far, down=True, up=False), above)),
            (_ever(below), from_there(view.rounded(far, down=False, up=True), below)),
        ],
        view.rounded(far, down=True, up=True),
    )


@ROWS.row(BAND, FloorRem, Rem)
def band_of_remainder(op: FloorRem | Rem, view: View) -> Far:
    """Of a division by an integer: the same in each block that is a multiple of it."""
    a, b = view.inputs
    if not b.is_known.all() or not b.is_bounded.all() or (b.low < 1).any() or (b.low % 1 != 0).any():
        return UNKNOWN
    divisor = b.low
    view.analysis.units.update(int(one) for one in np.unique(divisor) if one <= LARGEST_UNIT)
    repeats = (a.per_block % divisor == 0) & (a.per_distance % divisor == 0) & (a.low == a.high) & a.is_bounded
    positive = a.at_least(0)
    signed = isinstance(op, Rem)
    sure = _ever(positive) | (not signed)
    start = positive if signed else a.beyond
    rest = np.mod(np.where(repeats, a.low, 0.0), divisor)
    least = 1 - divisor if signed else 0.0
    return choose(
        [(sure & repeats, exactly(rest, start)), (sure, Far.between(0.0, divisor - 1, start))],
        Far.between(least, divisor - 1, a.beyond),
    )


@ROWS.row(BAND, Min, Max)
def band_of_extreme(op: Min | Max, view: View) -> Far:
    """One of the two, from where on it is surely the one."""
    a, b = view.inputs
    difference = _difference(a, b) if isinstance(op, Max) else _difference(b, a)
    first, second = difference.at_least(0), difference.times(-1.0).at_least(0)
    bounds = (np.maximum, np.maximum) if isinstance(op, Max) else (np.minimum, np.minimum)
    flat = a.is_flat & b.is_flat
    either = Far.between(bounds[0](a.low, b.low), bounds[1](a.high, b.high), np.maximum(a.beyond, b.beyond))
    cases = [(_ever(first), from_there(a, first)), (_ever(second), from_there(b, second)), (flat, either)]
    return choose(cases, UNKNOWN)


def _ever(beyond: Array) -> Array:
    return beyond < np.inf


def answer(true: Array, false: Array) -> Far:
    """A boolean that is surely true from one distance on, or false from another."""
    return choose([(_ever(true), exactly(1, true)), (_ever(false), exactly(0, false))], EITHER)


_COMPARED: Final[dict[type[Binary], tuple[int, bool]]] = {
    Gt: (1, True),
    Ge: (1, False),
    Lt: (-1, True),
    Le: (-1, False),
}
"""With which sign the difference is above 0 where the answer is yes, and whether strictly."""


@ROWS.row(BAND, Gt, Ge, Lt, Le)
def band_of_order(op: Binary, view: View) -> Far:
    """The sign of the difference."""
    sign, strictly = _COMPARED[type(op)]
    difference = _difference(*view.inputs).times(float(sign))
    yes = difference.at_least(0, strictly=strictly)
    return answer(yes, difference.times(-1.0).at_least(0, strictly=not strictly))


@ROWS.row(BAND, Eq)
def band_of_eq(op: Eq, view: View) -> Far:
    """Surely not, once one is larger."""
    return answer(*_equality(view))


@ROWS.row(BAND, Ne)
def band_of_ne(op: Ne, view: View) -> Far:
    """Surely, once one is larger."""
    same, other = _equality(view)
    return answer(other, same)


def _equality(view: View) -> tuple[Array, Array]:
    """From where on two numbers are surely the same, and surely not. Of infinities, there is no difference."""
    a, b = view.inputs
    difference = _difference(a, b)
    alike = difference.is_all(0) | (a.is_known & b.is_known & (a.low == b.low))
    same = np.where(alike, np.maximum(a.beyond, b.beyond), _NEVER)
    above = difference.at_least(0, strictly=True)
    return same, np.minimum(above, difference.times(-1.0).at_least(0, strictly=True))


@ROWS.row(BAND, And)
def band_of_and(op: And, view: View) -> Far:
    """False where either is."""
    return _all_of(*view.inputs)


@ROWS.row(BAND, Or)
def band_of_or(op: Or, view: View) -> Far:
    """True where either is: false where both are."""
    return negated(_all_of(*(negated(far) for far in view.inputs)))


def _all_of(a: Far, b: Far) -> Far:
    false = [np.where(far.is_all(0), far.beyond, _NEVER) for far in (a, b)]
    true = np.where(a.is_all(1) & b.is_all(1), np.maximum(a.beyond, b.beyond), _NEVER)
    return answer(true, np.minimum(*false))


def negated(far: Far) -> Far:
    """Logical not."""
    return far.times(-1.0).plus(exactly(1.0))
