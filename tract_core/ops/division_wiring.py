"""Quotients that are rounded down."""

from __future__ import annotations

from tract_core.ops.binary import Rem
from tract_core.ops.polar_wiring import ranked
from tract_core.ops.wired import Wired


def divided_down(a: Wired, b: Wired) -> Wired:
    """The quotient of integers, rounded down: one less than towards 0 where something is left and it is negative."""
    a, b = ranked(a, b)
    quotient = a / b
    return quotient - is_above(a.op(Rem(), b), b).cast(a.dtype) if a.dtype.is_signed() else quotient


def is_above(rest: Wired, divisor: Wired) -> Wired:
    """Whether a quotient that leaves ``rest`` is one more than rounded down."""
    return rest.ne(0) & ((divisor < 0) ^ (rest < 0))
