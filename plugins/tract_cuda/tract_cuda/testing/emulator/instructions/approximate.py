"""Functions that a device approximates: computed as doubles, and as far off as PTX's manual allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.floats import approximate, arithmetic, each, finished, flushed, narrowed, widened
from tract_cuda.testing.emulator.types import FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer

_LIBRARY: Final = {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh"}
_ROUNDING: Final = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""How far a result is off, relatively, because it is rounded."""
_RELATIVE: Final = {
    "ex2": {"f32": 2.0**-22, "f16": 2.0**-9.9, "bf16": 2.0**-7},
    "lg2": {"f32": 2.0**-22},
    "tanh": {"f32": 2.0**-11},
    "rsqrt": {"f32": 2.0**-22.9},
    "sqrt": {"f32": 2.0**-23},
    "rcp": {"f32": 2.0**-24 + 2.0**-25},
    "div": {"f32": 2.0**-23},
}
"""Bounds, relative to the result: where the manual counts in last places, those of the least relative size."""
_ABSOLUTE: Final = {
    "sin": {"f32": 2.0**-20.5},
    "cos": {"f32": 2.0**-20.5},
    "tanh": {"f16": 2.0**-10.987, "bf16": 2.0**-8},
    "lg2": {"f32": 2.0**-22},
}
"""Bounds that do not depend on the result; `lg2` has its own near 1, and the other elsewhere."""
_FAR: Final = 2.0**-14.7 / 2.0**-20.5
"""So much farther off are sines of arguments beyond 2 pi."""


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
    """What is found for an argument, as far off as it may be."""
    relative = _RELATIVE.get(name, {}).get(kind, 0.0)
    absolute = _ABSOLUTE.get(name, {}).get(kind, 0.0)
    if name == "lg2":
        near = approximate(w, found, 0.0, absolute / 2)
        far = approximate(w, found, max(relative - _ROUNDING[kind], 0.0))
        return _near_or_far(w, _between(w, argument, 0.5, 2.0), near, far)
    if name in ("sin", "cos"):
        near, far = (approximate(w, found, 0.0, absolute * factor - 2.0**-24) for factor in (1.0, _FAR))
        return _near_or_far(w, _between(w, argument, -6.2831, 6.2831), near, far)
    bounds = max(relative - _ROUNDING[kind], 0.0), max(absolute - _ROUNDING[kind] / 2, 0.0)
    return approximate(w, found, *bounds)


def _near_or_far(w: Writer, inside: str, near: str, far: str) -> str:
    return w.ir(f"select i1 {inside}, float {near}, float {far}")


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
    found = approximate(w, w.ir(f"fdiv double {x}, {y}"), _RELATIVE["div"]["f32"] - _ROUNDING["f32"])
    if op.has("approx"):  # large divisors give zero
        size = w.intrinsic("llvm.fabs.f64", "double", f"double {y}")
        large = _between(w, size, 2.0**126, float("inf"))
        finite = _between(w, x, float("-inf"), float("inf"))
        none = w.intrinsic("llvm.copysign.f32", "float", "float 0.0", f"float {found}")
        found = w.ir(f"select i1 {w.two('and', 1, large, finite)}, float {none}, float {found}")
    w.put(op.operands[0], finished(w, op, found, "float"), "f32")


TABLE: Final[Mapping[str, Row]] = {
    **{name: Row(_function, "approx ftz") for name in (*_LIBRARY, "rsqrt")},
    "sqrt": Row(_root, "approx ftz rn rz rm rp"),
    "rcp": Row(_reciprocal, "approx ftz rn rz rm rp"),
}
