"""Points of a plane as angles and distances, and the signs that those take."""

from __future__ import annotations

from math import inf, pi

from tract_core.ops.elementwise import Atan
from tract_core.ops.wired import Wired


def ranked(*operands: Wired) -> list[Wired]:
    """All of them at the highest rank among them, aligned at the last axis."""
    wire = operands[0].wire
    return [Wired(wire, x) for x in wire.ranks(*(operand.outlet for operand in operands))]


def is_negative(x: Wired) -> Wired:
    """Whether an element of numbers is negative, or -0.0."""
    below = x < 0
    return below | (x.reciprocal() < 0) if x.dtype.is_float() else below


def with_sign(magnitude: Wired, x: Wired) -> Wired:
    """A magnitude with the sign of ``x``."""
    magnitude, x = ranked(magnitude, x)
    return is_negative(x).where(-magnitude, magnitude)


def wire_hypot(a: Wired, b: Wired) -> Wired:
    """The root of the sum of both squares; the larger one is taken out, so that no square leaves the type."""
    a, b = abs(a), abs(b)
    most, least = a.maximum(b), a.minimum(b)
    ratio = least / most.eq(0).where(1, most)
    found = most * (1 + ratio.square()).sqrt()
    return (a.eq(inf) | b.eq(inf)).where(inf, found)


def wire_atan2(y: Wired, x: Wired) -> Wired:
    """The angle of a point, between -pi and pi."""
    high, wide = abs(y), abs(x)
    most, least = high.maximum(wide), high.minimum(wide)
    ratio = least / most.eq(0).where(1, most)
    ratio = least.eq(inf).where(1, ratio)  # both are infinite
    angle = ratio.op(Atan())
    angle = (high > wide).where(pi / 2 - angle, angle)
    angle = is_negative(x).where(pi - angle, angle)
    return with_sign(angle, y)
