"""Functions of one number."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Abs, Ceil, ElementWise, Floor, Neg, Not
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import View
from tract_pulse.bands.far import EITHER, FILL, UNKNOWN, Far, choose, from_there
from tract_pulse.registry import BAND
from tract_pulse.squares.binary import answer, negated, towards_zero
from tract_pulse.squares.values import of_known_numbers

ROWS = Rows()

_SMALL: Final = 127
"""Every type of numbers holds integers up to this."""


@ROWS.row(BAND, ElementWise)
def band(op: ElementWise, view: View) -> Far:
    """Of a number that is known."""
    return of_known_numbers(op, view)


@ROWS.row(BAND, Neg)
def band_of_neg(op: Neg, view: View) -> Far:
    """-x"""
    return view.inputs[0].times(-1.0)


@ROWS.row(BAND, Not)
def band_of_not(op: Not, view: View) -> Far:
    """Not x"""
    return negated(view.inputs[0])


@ROWS.row(BAND, Abs)
def band_of_abs(op: Abs, view: View) -> Far:
    """X or -x, once the sign is known."""
    (x,) = view.inputs
    minus = x.times(-1.0)
    above, below = x.at_least(0), minus.at_least(0)
    most = np.maximum(np.abs(x.low), np.abs(x.high))
    return choose(
        [
            (above < np.inf, from_there(x, above)),
            (below < np.inf, from_there(minus, below)),
            (x.is_flat, Far.between(0.0, most, x.beyond)),
        ],
        UNKNOWN,
    )


@ROWS.row(BAND, Floor)
def band_of_floor(op: Floor, view: View) -> Far:
    """Rounded down."""
    return view.rounded(view.inputs[0], down=True, up=False)


@ROWS.row(BAND, Ceil)
def band_of_ceil(op: Ceil, view: View) -> Far:
    """Rounded up."""
    return view.rounded(view.inputs[0], down=False, up=True)


@ROWS.row(BAND, Cast)
def band_of_cast(op: Cast, view: View) -> Far:
    """Positions stay what they are in types that have room for them: i32, f32 and wider ones."""
    (x,), source = view.inputs, view.input_fact(0).datum_type
    if not op.to.is_bool() and op.to.itemsize < 4:
        x = choose(
            [(x.is_flat & (np.abs(x.low) <= _SMALL) & (np.abs(x.high) <= _SMALL), x), (x.high <= FILL, x)], UNKNOWN
        )
    if op.to.is_bool() and not source.is_bool():
        zero = np.where(x.is_all(0), x.beyond, np.inf)
        other = np.minimum(x.at_least(0, strictly=True), x.times(-1.0).at_least(0, strictly=True))
        return answer(other, zero)
    if not (op.to.is_float() or op.to.is_integer() or op.to.is_bool()) or source.is_quantized():
        return EITHER if op.to.is_bool() else UNKNOWN
    if op.to.is_integer() and source.is_float():
        return choose([(x.is_bounded, towards_zero(view, x))], UNKNOWN)
    return x
