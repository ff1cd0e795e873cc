"""Rules for operators on two tensors: neutral and absorbing elements, order of operands, cheaper equivalents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, cast

import ml_dtypes
import numpy as np

from tract_core.data import Constant
from tract_core.dims import is_one
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops import binary as ops
from tract_core.ops.binary import Binary, Div, Mul, Pow, ShiftLeft, ShiftRight
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.elementwise import PowConst, Recip, Rsqrt, Sqrt, Square
from tract_core.ops.rounding import limits
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, is_known, uniform, uniform_operand
from tract_core.rules.signs import never_negative, zeros_without_sign

ROWS = Rows()

_NEUTRAL_RIGHT: Final[dict[type[Binary], Any]] = {
    ops.Add: 0,
    ops.Sub: 0,
    ops.Mul: 1,
    ops.Div: 1,
    ops.Pow: 1,
    ops.ShiftLeft: 0,
    ops.ShiftRight: 0,
    ops.And: True,
    ops.Or: False,
    ops.Xor: False,
    ops.BitAnd: -1,
    ops.BitOr: 0,
    ops.BitXor: 0,
}
"""For each operator, the element ``e`` for which ``x op e`` is ``x``."""

_NEUTRAL_LEFT: Final[dict[type, Any]] = {
    **{kind: element for kind, element in _NEUTRAL_RIGHT.items() if kind.commutes},
    ops.SubF: 0,
}
"""The same for ``e op x``."""

_ABSORBING: Final[dict[type, Any]] = {ops.Mul: 0, ops.And: False, ops.Or: True, ops.BitAnd: 0}
"""For each operator, the element ``e`` for which ``x op e`` is ``e``; for integers and booleans only."""


@rewrites(*{*_NEUTRAL_RIGHT, *_NEUTRAL_LEFT}, ops.Min, ops.Max)
def neutral_element(model: TypedModel, node: TypedNode, op: Binary) -> ModelPatch | None:
    """``x + 0``, ``x * 1``, ``x and true``, ``max(x, -inf)`` ... -> ``x``, when x has the shape of the result

    As ``-0.0 + 0.0`` is ``0.0``, the neutral element of a sum of floats is ``-0.0``; ``0.0`` is one where ``x`` has no
    ``-0.0``, or promises no sign for its zeros, as matrix products and other sums do not.
    """
    found = uniform_operand(model, node)
    if found is None:
        return None
    slot, element = found
    fact = model.outlet_fact(node.inputs[slot])
    if fact.shape != node.outputs[0].fact.shape or fact.datum_type.is_quantized() or fact.datum_type.is_complex():
        return None
    neutral = _neutral(op, slot, fact)
    if neutral is None or element != neutral:
        return None
    if fact.datum_type.is_float() and neutral == 0 and not _keeps_zeros(model, op, node.inputs[slot], float(element)):
        return None
    return ModelPatch.shunt_one(model, node, node.inputs[slot])


def _keeps_zeros(model: TypedModel, op: Binary, x: OutletId, zero: float) -> bool:
    """Whether a zero that is added to floats, or taken from them, leaves the sign of their zeros as it is."""
    added = isinstance(op, ops.Add) == (math.copysign(1.0, zero) > 0)
    return not added or zeros_without_sign(model, x)


def _neutral(op: Binary, slot: int, fact: TypedFact) -> Any:
    kind = fact.datum_type.storage
    if isinstance(op, (ops.Min, ops.Max)):
        lowest = isinstance(op, ops.Max)
        if kind.is_float():
            return -math.inf if lowest else math.inf
        return limits(kind)[0 if lowest else 1] if kind.is_integer() else None
    if isinstance(op, ops.BitAnd) and kind.is_unsigned():
        return limits(kind)[1]
    return (_NEUTRAL_LEFT if slot == 1 else _NEUTRAL_RIGHT).get(type(op))


@rewrites(*_ABSORBING)
def absorbing_element(model: TypedModel, node: TypedNode, op: Binary) -> ModelPatch | None:
    """``x * 0``, ``x and false``, ``x or true`` -> the constant, stretched; not for floats: ``inf * 0`` is not 0"""
    found = uniform_operand(model, node)
    fact = node.outputs[0].fact
    if found is None or found[1] != _ABSORBING[type(op)]:
        return None
    if not (fact.datum_type.is_integer() or fact.datum_type.is_bool()) or _told_by_running(model, fact):
        return None
    patch = ModelPatch(model)
    element = Constant(np.full((1,) * fact.rank, found[1], dtype=fact.datum_type.numpy))
    source = patch.model.add_const(f"{node.name}.element", element)
    if not all(is_one(dim) for dim in fact.shape):
        source = wire_one(patch.model, node.name, MultiBroadcastTo(tuple(fact.shape)), source)
    patch.shunt(OutletId(node.id), source)
    return patch


def _told_by_running(model: TypedModel, fact: TypedFact) -> bool:
    """Whether the shape mentions a symbol that only the node that is to go, or one behind it, gives a value."""
    return not fact.shape.is_concrete and not fact.shape.symbols() <= model.given_symbols()


_MIRRORED: Final[dict[type, Callable[[], Binary]]] = {
    **{kind: kind for kind in (ops.Add, ops.Mul, ops.Min, ops.Max, ops.And, ops.Or, ops.Xor)},
    **{kind: kind for kind in (ops.BitAnd, ops.BitOr, ops.BitXor, ops.Eq, ops.Ne)},
    ops.Lt: ops.Gt,
    ops.Gt: ops.Lt,
    ops.Le: ops.Ge,
    ops.Ge: ops.Le,
    ops.Sub: ops.SubF,
    ops.SubF: ops.Sub,
}
"""For each operator, the one that computes the same from swapped operands."""


@rewrites(*_MIRRORED)
def smaller_operand_second(model: TypedModel, node: TypedNode, op: Binary) -> ModelPatch | None:
    """f(constant or stretched, x) -> g(x, constant or stretched), with the operator that wants them in that order"""
    a, b = node.inputs
    first, second = is_known(model, a), is_known(model, b)
    if first == second:
        left, right = model.outlet_fact(a).shape, model.outlet_fact(b).shape
        if left == right or not _narrower(left, right):
            return None
    elif second:
        return None
    return ModelPatch.replace_op(model, node, _MIRRORED[type(op)](), [b, a])


def _narrower(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether the first shape stretches in more axes than the second."""
    return sum(map(is_one, a)) > sum(map(is_one, b))


@rewrites(Mul)
def merge_factors(model: TypedModel, node: TypedNode, op: Mul) -> ModelPatch | None:
    """(x * c) * d -> x * (c * d), for constants, when nothing else reads the inner product and all x give the same

    For integers they always do. For floats they do where ``c`` or ``d`` is 1 or -1, and where ``c`` is a power of two
    of 1 or more and ``d`` is not below 1: then the inner product is exact, or as infinite as the outer one.
    """
    outer = model.outlet_fact(node.inputs[1]).value
    inner = alone_by(model, node.inputs[0], Mul)
    if inner is None or not isinstance(outer, Constant):
        return None
    first = model.outlet_fact(inner.inputs[1]).value
    x = model.outlet_fact(inner.inputs[0])
    if not isinstance(first, Constant) or x.value is not None or max(first.array.size, outer.array.size) > 1 << 20:
        return None
    if x.shape != node.outputs[0].fact.shape or not _merge_exactly(first.array, outer.array, x):
        return None
    patch = ModelPatch(model)
    factor = patch.model.add_const(f"{node.name}.factor", Constant(first.array * outer.array))
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, Mul(), patch.tap(inner.inputs[0]), factor))
    return patch


def _merge_exactly(c: np.ndarray[Any, Any], d: np.ndarray[Any, Any], x: TypedFact) -> bool:
    """Whether ``(x * c) * d`` and ``x * (c * d)`` are the same for every ``x``, bit by bit."""
    if not x.datum_type.is_float():
        return x.datum_type.is_integer()
    c, d = c.astype(np.float64), d.astype(np.float64)
    inside = np.abs(c * d) <= float(cast("Any", ml_dtypes.finfo(x.datum_type.numpy)).max)
    return bool(np.all((np.abs(c) == 1) | (np.abs(d) == 1) | (inside & _doubles(c) & (np.abs(d) >= 1))))


def _doubles(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where finite numbers are 1, 2, 4, 8 ..., of either sign."""
    return (np.abs(np.frexp(values)[0]) == 0.5) & (np.abs(values) >= 1)


@rewrites(Mul)
def square(model: TypedModel, node: TypedNode, op: Mul) -> ModelPatch | None:
    """``x * x`` -> Square(x)"""
    a, b = node.inputs
    if a != b or not model.outlet_fact(a).datum_type.is_number() or model.outlet_fact(a).datum_type.is_quantized():
        return None
    return ModelPatch.replace_op(model, node, Square(), [a])


@rewrites(Mul)
def shift_left(model: TypedModel, node: TypedNode, op: Mul) -> ModelPatch | None:
    """``x * 2**n`` -> x << n, for integers"""
    bits = _bits(model, node, 1)
    return None if bits is None else _shifted(model, node, ShiftLeft(), bits)


@rewrites(Div)
def shift_right(model: TypedModel, node: TypedNode, op: Div) -> ModelPatch | None:
    """``x / 2**n`` -> x >> n, for unsigned integers (others are divided towards zero)"""
    bits = _bits(model, node, 1)
    if bits is None or not model.outlet_fact(node.inputs[0]).datum_type.is_unsigned():
        return None
    return _shifted(model, node, ShiftRight(), bits)


def _bits(model: TypedModel, node: TypedNode, slot: int) -> int | None:
    if not node.outputs[0].fact.datum_type.is_integer():
        return None
    element = uniform(model, node.inputs[slot])
    if not isinstance(element, int) or element < 2 or element & (element - 1):
        return None
    return element.bit_length() - 1


def _shifted(model: TypedModel, node: TypedNode, op: Binary, bits: int) -> ModelPatch:
    fact = model.outlet_fact(node.inputs[1])
    patch = ModelPatch(model)
    x = patch.tap(node.inputs[0])
    count = patch.model.add_const(
        f"{node.name}.bits", Constant(np.full(fact.shape.concrete, bits, dtype=fact.datum_type.numpy))
    )
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, op, x, count))
    return patch


@rewrites(Div)
def multiply_by_reciprocal(model: TypedModel, node: TypedNode, op: Div) -> ModelPatch | None:
    """``x / c`` -> x * (1/c), for floats and powers of two: their reciprocals are exact, so no result changes"""
    value = model.outlet_fact(node.inputs[1]).value
    if not isinstance(value, Constant) or not value.datum_type.is_float() or value.array.size > 1 << 20:
        return None
    if is_known(model, node.inputs[0]) or not _has_reciprocals(value):
        return None
    patch = ModelPatch(model)
    inverse = Constant((1 / value.array.astype(np.float64)).astype(value.array.dtype))
    factor = patch.model.add_const(f"{node.name}.reciprocal", inverse)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, Mul(), patch.tap(node.inputs[0]), factor))
    return patch


def _has_reciprocals(value: Constant) -> bool:
    """Whether every element is a power of two whose reciprocal the type holds in full, and not as a subnormal."""
    kind = cast("Any", ml_dtypes.finfo(value.array.dtype))
    divisor = value.array.astype(np.float64)
    exact = np.abs(np.frexp(divisor)[0]) == 0.5
    return bool(
        np.all(exact & (np.abs(divisor) <= 1 / float(kind.smallest_normal)) & (np.abs(divisor) >= 1 / float(kind.max)))
    )


@rewrites(Div)
def reciprocal(model: TypedModel, node: TypedNode, op: Div) -> ModelPatch | None:
    """``1 / x`` -> Recip(x), for floats"""
    fact = model.outlet_fact(node.inputs[1])
    if not fact.datum_type.is_float() or fact.shape != node.outputs[0].fact.shape or is_known(model, node.inputs[1]):
        return None
    return ModelPatch.replace_op(model, node, Recip(), node.inputs[1:]) if uniform(model, node.inputs[0]) == 1 else None


_POWERS: Final[dict[float, Callable[[], TypedOp]]] = {2.0: Square, -1.0: Recip}

_ROOTS: Final[dict[float, Callable[[], TypedOp]]] = {0.5: Sqrt, -0.5: Rsqrt}
"""Powers of what is never negative: of -inf and -0.0, a power is inf or 0.0, and a root is not."""


@rewrites(Pow)
def constant_power(model: TypedModel, node: TypedNode, op: Pow) -> ModelPatch | None:
    """``x ** 2`` -> Square(x); ** -1 -> Recip(x); ** c -> PowConst(c)(x); of what is never negative, ** 0.5 -> Sqrt(x)

    and ** -0.5 -> Rsqrt(x). Powers are only as exact as the library that computes them; these are, to the last digit.
    """
    exponent = uniform(model, node.inputs[1])
    fact = model.outlet_fact(node.inputs[0])
    if exponent is None or fact.shape != node.outputs[0].fact.shape:
        return None
    if fact.datum_type.is_float():
        simple = _simple_power(model, node.inputs[0], float(exponent))
        return ModelPatch.replace_op(model, node, simple or PowConst(float(exponent)), node.inputs[:1])
    if fact.datum_type.is_integer() and exponent == 2:
        return ModelPatch.replace_op(model, node, Square(), node.inputs[:1])
    return None


@rewrites(PowConst)
def simple_power(model: TypedModel, node: TypedNode, op: PowConst) -> ModelPatch | None:
    """PowConst(2)(x) -> Square(x), and so on, as for `constant_power`; PowConst(1)(x) -> x"""
    if op.exponent == 1.0:
        return ModelPatch.shunt_one(model, node)
    simple = _simple_power(model, node.inputs[0], op.exponent)
    return None if simple is None else ModelPatch.replace_op(model, node, simple)


def _simple_power(model: TypedModel, x: OutletId, exponent: float) -> TypedOp | None:
    simple = _POWERS.get(exponent)
    if simple is None and exponent in _ROOTS and never_negative(model, x):
        simple = _ROOTS[exponent]
    return None if simple is None else simple()


for rule in (
    neutral_element,
    absorbing_element,
    smaller_operand_second,
    square,
    merge_factors,
    shift_left,
    shift_right,
    multiply_by_reciprocal,
    reciprocal,
    constant_power,
    simple_power,
):
    ROWS.add(DECLUTTER, rule.name, rule)
