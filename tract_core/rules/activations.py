"""Recognise activation functions that a file spells out: GELU in both forms, SiLU, hard swish.

All of them are a product of ``x`` and a *gate*, a function of ``x``. Constant factors may stand anywhere in the
product; what is left of them after the pattern stays behind as a factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Div, Max, Min, Mul
from tract_core.ops.elementwise import (
    ElementWise,
    Erf,
    GeluApproximate,
    GeluExact,
    HardSwish,
    PowConst,
    Sigmoid,
    Silu,
    Square,
    Tanh,
)
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import op_of, produced_by, uniform, uniform_operand

ROWS = Rows()

RELATIVE: Final = 1e-3
"""How far a constant of a pattern may be off: files hold them rounded to half precision, or to a few decimals."""


@dataclass(frozen=True, slots=True)
class Product:
    """A number times some tensors."""

    coefficient: float
    factors: tuple[OutletId, ...]


def product_of(model: TypedModel, root: OutletId) -> Product:
    """The factors of ``root``, through multiplications (and divisions by a number) that nothing else reads."""
    coefficient, factors, pending = 1.0, list[OutletId](), [root]
    while pending and len(factors) <= 2:
        outlet = pending.pop()
        node = model.nodes[outlet.node]
        known = uniform(model, outlet)
        if known is not None:
            coefficient *= known
        elif isinstance(node.op, Mul) and (outlet == root or model.single_reader(outlet) is not None):
            pending.extend(node.inputs)
        elif isinstance(node.op, Div) and (divisor := uniform(model, node.inputs[1])):
            coefficient /= divisor
            pending.append(node.inputs[0])
        else:
            factors.append(outlet)
    return Product(coefficient, (*factors, *pending))


Polynomial = dict[int, float]
"""Coefficients by power of x."""


def polynomial_in(model: TypedModel, outlet: OutletId, x: OutletId, depth: int = 6) -> Polynomial | None:
    """What ``outlet`` is as a polynomial in the tensor ``x``, of degree 4 at most; ``None`` when it is none."""
    if outlet == x:
        return {1: 1.0}
    known = uniform(model, outlet)
    if known is not None:
        return {0: float(known)}
    node = model.nodes[outlet.node]
    build = _POLYNOMIALS.get(type(node.op))
    if build is None or depth == 0:
        return None
    parts: list[Polynomial] = []
    for source in node.inputs:
        part = polynomial_in(model, source, x, depth - 1)
        if part is None:
            return None
        parts.append(part)
    return build(node.op, parts)


def _add(op: TypedOp, parts: list[Polynomial]) -> Polynomial:
    a, b = parts
    return {power: a.get(power, 0.0) + b.get(power, 0.0) for power in a.keys() | b.keys()}


def _multiply(op: TypedOp, parts: list[Polynomial]) -> Polynomial | None:
    result: Polynomial = {}
    a, b = parts
    for left, p in a.items():
        for right, q in b.items():
            result[left + right] = result.get(left + right, 0.0) + p * q
    return result if max(result) <= 4 else None


def _divide(op: TypedOp, parts: list[Polynomial]) -> Polynomial | None:
    a, b = parts
    return {power: p / b[0] for power, p in a.items()} if b.keys() == {0} and b[0] else None


def _power(op: TypedOp, parts: list[Polynomial]) -> Polynomial | None:
    (x,) = parts
    exponent = op.exponent if isinstance(op, PowConst) else 2.0
    if len(x) != 1 or exponent not in (2.0, 3.0):
        return None
    ((power, factor),) = x.items()
    return {power * int(exponent): factor ** int(exponent)}


_POLYNOMIALS: Final[dict[type, Callable[[TypedOp, list[Polynomial]], Polynomial | None]]] = {
    Add: _add,
    Mul: _multiply,
    Div: _divide,
    Square: _power,
    PowConst: _power,
}


def near(found: Polynomial | None, wanted: Polynomial) -> bool:
    """Whether a polynomial is the wanted one, but for rounding of its coefficients."""
    if found is None:
        return False
    powers = {power for power, factor in found.items() if factor}
    return powers == wanted.keys() and all(math.isclose(found[p], wanted[p], rel_tol=RELATIVE) for p in powers)


@dataclass(frozen=True, slots=True)
class Gate:
    """``gate = scale * f(x)`` where ``x * f(x)`` is what the operator ``op`` computes."""

    op: ElementWise
    scale: float


_ROOT: Final = math.sqrt(2 / math.pi)
_EXACT: Final = {1: math.sqrt(0.5)}
_CUBIC: Final = {1: _ROOT, 3: _ROOT * 0.044715}
_SQUARED: Final = {1: _ROOT, 2: _ROOT * 0.044715}
_RAMP: Final = {0: 0.5, 1: 1 / 6}


def _gelu_gate(model: TypedModel, gate: TypedNode, x: OutletId) -> Gate | None:
    """1 + erf(x/sqrt(2)), or 1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)); both are twice what GELU multiplies with"""
    found = uniform_operand(model, gate)
    if found is None or found[1] != 1:
        return None
    inner = produced_by(model, gate.inputs[found[0]], Erf, Tanh)
    if inner is None:
        return None
    inside = polynomial_in(model, inner.inputs[0], x)
    if isinstance(inner.op, Erf):
        return Gate(GeluExact(), 2.0) if near(inside, _EXACT) else None
    if near(inside, _CUBIC):
        return Gate(GeluApproximate(), 2.0)
    return Gate(GeluApproximate(fast_impl=True), 2.0) if near(inside, _SQUARED) else None


def _silu_gate(model: TypedModel, gate: TypedNode, x: OutletId) -> Gate | None:
    """sigmoid(x)"""
    return Gate(Silu(), 1.0) if gate.inputs[0] == x else None


def _hard_gate(model: TypedModel, gate: TypedNode, x: OutletId) -> Gate | None:
    """clip(x/6 + 1/2, 0, 1) times any positive number"""
    outer = uniform_operand(model, gate)
    inner = outer and produced_by(model, gate.inputs[outer[0]], Max if isinstance(gate.op, Min) else Min)
    inside = inner and uniform_operand(model, inner)
    if not outer or not inner or not inside:
        return None
    low, high = sorted((float(outer[1]), float(inside[1])))
    upper = outer[1] if isinstance(gate.op, Min) else inside[1]
    ramp = polynomial_in(model, inner.inputs[inside[0]], x)
    if low != 0 or high <= 0 or upper != high or ramp is None:
        return None
    return Gate(HardSwish(), high) if near({p: f / high for p, f in ramp.items()}, _RAMP) else None


_GATES: Final[dict[type, Callable[[TypedModel, TypedNode, OutletId], Gate | None]]] = {
    Add: _gelu_gate,
    Sigmoid: _silu_gate,
    Min: _hard_gate,
    Max: _hard_gate,
}


@rewrites(Mul)
def spelled_out_activation(model: TypedModel, node: TypedNode, op: Mul) -> ModelPatch | None:
    """GELU, SiLU or hard swish, spelled out -> the one operator, times what is left of constant factors

    ``x/2 * (1 + erf(x/sqrt(2)))`` -> ``GeluExact(x)``; its tanh form -> ``GeluApproximate(x)``; ``x * sigmoid(x)`` ->
    ``Silu(x)``; ``x * clip(x/6 + 1/2, 0, 1)`` -> ``HardSwish(x)``
    """
    fact = node.outputs[0].fact
    if not fact.datum_type.is_float() or not _may_have_gate(model, node):
        return None
    product = product_of(model, OutletId(node.id))
    for gate, x in _pairs(product):
        recognise = _GATES.get(type(op_of(model, gate)))
        found = recognise(model, model.nodes[gate.node], x) if recognise else None
        if found is None or model.outlet_fact(x).shape != fact.shape:
            continue
        factor = product.coefficient * found.scale
        return _activation(model, node, x, found.op, 1.0 if math.isclose(factor, 1.0, rel_tol=1e-6) else factor)
    return None


def _may_have_gate(model: TypedModel, node: TypedNode) -> bool:
    """A quick look: a gate is a factor of this product or of one of its factors."""
    for outlet in node.inputs:
        producer = model.nodes[outlet.node]
        if type(producer.op) in _GATES:
            return True
        if isinstance(producer.op, (Mul, Div)) and any(type(op_of(model, o)) in _GATES for o in producer.inputs):
            return True
    return False


def _pairs(product: Product) -> Iterator[tuple[OutletId, OutletId]]:
    if len(product.factors) == 2:
        a, b = product.factors
        yield a, b
        yield b, a


def _activation(model: TypedModel, node: TypedNode, x: OutletId, op: ElementWise, factor: float) -> ModelPatch:
    fact = node.outputs[0].fact
    patch = ModelPatch(model)
    if factor == 1.0:
        result = wire_one(patch.model, node.name, op, patch.tap(x))
    else:
        inner = wire_one(patch.model, f"{node.name}.activation", op, patch.tap(x))
        scale = Constant(fact.datum_type.numpy.type(factor).reshape((1,) * fact.rank))
        result = wire_one(patch.model, node.name, Mul(), inner, patch.model.add_const(f"{node.name}.factor", scale))
    patch.shunt(OutletId(node.id), result)
    return patch


ROWS.add(DECLUTTER, spelled_out_activation.name, spelled_out_activation)
