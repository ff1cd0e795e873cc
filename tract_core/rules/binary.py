"""Rules for operators on two tensors: neutral and absorbing elements, order of operands, cheaper equivalents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tract_core.data import Constant
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops import binary as ops
from tract_core.ops.axis import AxisOp
from tract_core.ops.binary import Binary, Comparison, Div, Mul, Pow, ShiftLeft, ShiftRight
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Ceil, Floor, PowConst, Recip, Round, RoundHalfToEven, Rsqrt, Sign, Sqrt, Square
from tract_core.ops.expect import is_one
from tract_core.ops.iff import Iff
from tract_core.ops.quantize import QuantizeLinear
from tract_core.ops.rounding import limits
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, is_known, uniform, uniform_operand

ROWS = Rows()

# -- neutral and absorbing elements --------------------------------------------------------------------------------

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

    Numbers stay the same; that ``-0.0 + 0.0`` is ``0.0``, and no ``-0.0``, is given up.
    """
    found = uniform_operand(model, node)
    if found is None:
        return None
    slot, element = found
    fact = model.outlet_fact(node.inputs[slot])
    if fact.shape != node.outputs[0].fact.shape or fact.datum_type.is_quantized():
        return None
    neutral = _neutral(op, slot, fact)
    if neutral is None or element != neutral:
        return None
    return ModelPatch.shunt_one(model, node, node.inputs[slot])


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


# -- order of operands ---------------------------------------------------------------------------------------------

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


# -- cheaper equivalents -------------------------------------------------------------------------------------------


@rewrites(Mul)
def merge_factors(model: TypedModel, node: TypedNode, op: Mul) -> ModelPatch | None:
    """(x * c) * d -> x * (c * d), for constants, when nothing else reads the inner product"""
    outer = model.outlet_fact(node.inputs[1]).value
    inner = alone_by(model, node.inputs[0], Mul)
    if inner is None or not isinstance(outer, Constant):
        return None
    first = model.outlet_fact(inner.inputs[1]).value
    x = model.outlet_fact(inner.inputs[0])
    if not isinstance(first, Constant) or x.value is not None or max(first.array.size, outer.array.size) > 1 << 20:
        return None
    merged = _exact_enough(first.array, outer.array, x)
    if merged is None or x.shape != node.outputs[0].fact.shape:
        return None
    patch = ModelPatch(model)
    factor = patch.model.add_const(f"{node.name}.factor", Constant(merged))
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, Mul(), patch.tap(inner.inputs[0]), factor))
    return patch


def _exact_enough(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], x: TypedFact) -> np.ndarray[Any, Any] | None:
    """The product in the type of ``x``; ``None`` when it leaves the range in which that type has all of its digits."""
    if not x.datum_type.is_float():
        return a * b if x.datum_type.is_integer() else None
    product = a.astype(np.float64) * b.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        result = product.astype(x.datum_type.numpy)
    back = result.astype(np.float64)
    return result if np.allclose(back, product, rtol=1e-2, atol=0) else None


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


_JUMPS: Final = (Floor, Ceil, Round, RoundHalfToEven, Sign, Comparison, ops.Rem, ops.FloorRem, QuantizeLinear)

_CARRIERS: Final = (Iff, AxisOp)
"""Operators that hand elements on as they are."""


@rewrites(Div)
def multiply_by_reciprocal(model: TypedModel, node: TypedNode, op: Div) -> ModelPatch | None:
    """``x / c`` -> x * (1/c), for floats; if the reciprocal is rounded, only when no reader turns that into a jump"""
    fact = model.outlet_fact(node.inputs[1])
    value = fact.value
    if not isinstance(value, Constant) or not fact.datum_type.is_float() or value.array.size > 1 << 20:
        return None
    if is_known(model, node.inputs[0]):
        return None
    divisor = value.array.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = 1 / divisor
        reciprocal = exact.astype(value.array.dtype)
    if not np.all(np.isfinite(exact)) or not np.allclose(reciprocal.astype(np.float64), exact, rtol=1e-2, atol=0):
        return None
    rounded = bool(np.any(reciprocal.astype(np.float64) != exact))
    if rounded and (value.array.dtype.itemsize < 4 or _jumps(model, node)):
        return None
    patch = ModelPatch(model)
    factor = patch.model.add_const(f"{node.name}.reciprocal", Constant(reciprocal))
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, Mul(), patch.tap(node.inputs[0]), factor))
    return patch


def _jumps(model: TypedModel, node: TypedNode) -> bool:
    open_nodes, seen = [node.id], {node.id}
    while open_nodes:
        for reader in model.outlet(OutletId(open_nodes.pop())).successors:
            op: Any = model.nodes[reader.node].op
            if isinstance(op, _JUMPS) or (isinstance(op, Cast) and not op.to.is_float()):
                return True
            if isinstance(op, _CARRIERS) and reader.node not in seen:
                seen.add(reader.node)
                open_nodes.append(reader.node)
    return False


@rewrites(Div)
def reciprocal(model: TypedModel, node: TypedNode, op: Div) -> ModelPatch | None:
    """``1 / x`` -> Recip(x), for floats"""
    fact = model.outlet_fact(node.inputs[1])
    if not fact.datum_type.is_float() or fact.shape != node.outputs[0].fact.shape or is_known(model, node.inputs[1]):
        return None
    return ModelPatch.replace_op(model, node, Recip(), node.inputs[1:]) if uniform(model, node.inputs[0]) == 1 else None


_POWERS: Final[dict[float, Callable[[], TypedOp]]] = {2.0: Square, 0.5: Sqrt, -1.0: Recip, -0.5: Rsqrt}


@rewrites(Pow)
def constant_power(model: TypedModel, node: TypedNode, op: Pow) -> ModelPatch | None:
    """``x ** 2`` -> Square(x); ** 0.5 -> Sqrt(x); ** -1 -> Recip(x); ** -0.5 -> Rsqrt(x); ** c -> PowConst(c)(x)"""
    exponent = uniform(model, node.inputs[1])
    fact = model.outlet_fact(node.inputs[0])
    if exponent is None or fact.shape != node.outputs[0].fact.shape:
        return None
    if fact.datum_type.is_float():
        simple = _POWERS.get(float(exponent))
        return ModelPatch.replace_op(model, node, simple() if simple else PowConst(float(exponent)), node.inputs[:1])
    if fact.datum_type.is_integer() and exponent == 2:
        return ModelPatch.replace_op(model, node, Square(), node.inputs[:1])
    return None


@rewrites(PowConst)
def simple_power(model: TypedModel, node: TypedNode, op: PowConst) -> ModelPatch | None:
    """PowConst(2)(x) -> Square(x), and so on; PowConst(1)(x) -> x"""
    if op.exponent == 1.0:
        return ModelPatch.shunt_one(model, node)
    simple = _POWERS.get(op.exponent)
    return None if simple is None else ModelPatch.replace_op(model, node, simple())


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
