"""Functions that a device approximates: computed as doubles, and as far off as PTX's manual allows."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any, Final

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.floats import approximate, arithmetic, each, finished, flushed, narrowed, widened
from tract_cuda.testing.emulator.types import FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer

_LIBRARY: Final = {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh"}
_ROUNDING: Final = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""How far a result is off, relatively, because it is rounded."""


@frozen
class Bound:
    """How far off a result may be, as the manual of PTX 9.1 says in a ``section``: relatively, or in absolute numbers.

    ``near``: an absolute bound for arguments between two numbers, in place of the relative one; ``far``: the absolute
    bound beyond those, up to a number, from where on the manual promises nothing.
    """

    section: str
    relative: float = 0.0
    absolute: float = 0.0
    near: tuple[float, float] | None = None
    far: tuple[float, float] | None = None


def _places(count: float) -> float:
    """Units in the last place of a f32, where they are relatively least, and half of one for rounding."""
    return (count + 0.5) * _ROUNDING["f32"]


_TURN: Final = 2 * pi
_ANGLES: Final[Mapping[str, Any]] = {"absolute": 2.0**-20.5, "near": (-_TURN, _TURN), "far": (2.0**-14.7, 50 * _TURN)}
BOUNDS: Final[Mapping[tuple[str, str], Bound]] = {
    ("div", "f32"): Bound("9.7.3.8", _places(2)),
    ("rcp", "f32"): Bound("9.7.3.13", _places(1)),
    ("sqrt", "f32"): Bound("9.7.3.15", 2.0**-23),
    ("rsqrt", "f32"): Bound("9.7.3.16", 2.0**-22.9),
    ("sin", "f32"): Bound("9.7.3.18", **_ANGLES),
    ("cos", "f32"): Bound("9.7.3.19", **_ANGLES),
    ("lg2", "f32"): Bound("9.7.3.20", 2.0**-22, 2.0**-22, near=(0.5, 2.0)),
    ("ex2", "f32"): Bound("9.7.3.21", _places(2)),
    ("tanh", "f32"): Bound("9.7.3.22", 2.0**-11),
    ("tanh", "f16"): Bound("9.7.4.9", absolute=2.0**-10.987),
    ("tanh", "bf16"): Bound("9.7.4.9", absolute=2.0**-8),
    ("ex2", "f16"): Bound("9.7.4.10", 2.0**-9.9),
    ("ex2", "bf16"): Bound("9.7.4.10", 2.0**-7),
}
"""By the name of an instruction, and its type."""

_UNBOUND: Final = 1.0
"""How far off a sine is where nothing is promised."""


def _function(w: Writer, op: Operation) -> None:
    each(w, op, op.kind, [op.operands[1]], lambda kind, values: _of(w, op, kind, values[0]))


def _of(w: Writer, op: Operation, kind: str, value: str) -> str:
    """One value, of a type of one number."""
    if kind == "f64":
        raise op.unknown("it is not approximated in f64")
    name = op.statement.opcode
    number = widened(w, flushed(w, op, value, FLOATS[kind]) if kind in FLOATS else value, kind)
    wide = w.ir(f"fpext float {number} to double")
    found = _exactly(w, name, wide)
    result = _off(w, name, kind, wide, found)
    if name == "ex2":  # the manual has 1 for zeros
        zero = w.ir(f"fcmp oeq double {wide}, 0.0")
        result = w.ir(f"select i1 {zero}, float 1.0, float {result}")
    return _done(w, op, result, kind)


def _off(w: Writer, name: str, kind: str, argument: str, found: str) -> str:
    """What is found for an argument, as far off as it may be: what rounding adds is left for that."""
    bound, rounding = BOUNDS.get((name, kind), Bound("")), _ROUNDING[kind]
    relative, absolute = (max(one, 0.0) for one in (bound.relative - rounding, bound.absolute - rounding / 2))
    if bound.near is None:
        return approximate(w, found, relative, absolute)
    inside = _between(w, argument, *bound.near)
    if bound.far is None:
        return _either(w, inside, approximate(w, found, 0.0, bound.absolute / 2), approximate(w, found, relative))
    farther, end = bound.far
    known = _between(w, argument, -end, end)
    far = _either(w, known, approximate(w, found, 0.0, farther - rounding), approximate(w, found, 0.0, _UNBOUND))
    return _either(w, inside, approximate(w, found, 0.0, bound.absolute - rounding), far)


def _either(w: Writer, condition: str, then: str, otherwise: str) -> str:
    return w.ir(f"select i1 {condition}, float {then}, float {otherwise}")


def _done(w: Writer, op: Operation, value: str, kind: str) -> str:
    if kind == "f32":
        return finished(w, op, value, "float")
    return narrowed(w, value, kind)


def _between(w: Writer, value: str, low: float, high: float) -> str:
    above = w.ir(f"fcmp ogt double {value}, {w.double(low)}")
    below = w.ir(f"fcmp olt double {value}, {w.double(high)}")
    return w.two("and", 1, above, below)


def _exactly(w: Writer, name: str, value: str) -> str:
    if name in _LIBRARY:
        return w.intrinsic(f"tract.{_LIBRARY[name]}", "double", f"double {value}")
    if name == "rcp":
        return w.ir(f"fdiv double 1.0, {value}")
    root = w.intrinsic("llvm.sqrt.f64", "double", f"double {value}")
    return root if name == "sqrt" else w.ir(f"fdiv double 1.0, {root}")


def _root(w: Writer, op: Operation) -> None:
    """Rounded exactly, or approximated."""
    if op.has("approx"):
        _function(w, op)
    else:
        w.put(op.operands[0], arithmetic(w, op, op.kind, "sqrt", [w.get(op.operands[1], op.kind)]), op.kind)


def _reciprocal(w: Writer, op: Operation) -> None:
    if op.has("approx"):
        _function(w, op)
        return
    kind = FLOATS[op.kind]
    one = w.ir(f"fadd {kind} 1.0, 0.0")
    w.put(op.operands[0], arithmetic(w, op, op.kind, "div", [one, w.get(op.operands[1], op.kind)]), op.kind)


def quotient(w: Writer, op: Operation) -> None:
    """``div.approx`` and ``div.full``, of f32."""
    x, y = (flushed(w, op, w.get(one, "f32"), "float") for one in op.operands[1:3])
    x, y = (w.ir(f"fpext float {one} to double") for one in (x, y))
    found = _off(w, "div", "f32", x, w.ir(f"fdiv double {x}, {y}"))
    if op.has("approx"):  # by large divisors: zero of numbers, and no number of infinities
        large = _between(w, w.intrinsic("llvm.fabs.f64", "double", f"double {y}"), 2.0**126, float("inf"))
        none = w.intrinsic("llvm.copysign.f32", "float", "float 0.0", f"float {found}")
        lost = w.ir(f"fsub float {found}, {found}")  # no number where what is found is infinite, or none
        finite = _between(w, x, float("-inf"), float("inf"))
        found = _either(w, large, _either(w, finite, none, lost), found)
    w.put(op.operands[0], finished(w, op, found, "float"), "f32")


TABLE: Final[Mapping[str, Row]] = {
    **{name: Row(_function, "approx ftz") for name in (*_LIBRARY, "rsqrt")},
    "sqrt": Row(_root, "approx ftz rn rz rm rp"),
    "rcp": Row(_reciprocal, "approx ftz rn rz rm rp"),
}
