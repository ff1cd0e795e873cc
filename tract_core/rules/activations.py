"""Recognise activation functions that a file spells out: GELU in both forms, SiLU.

All of them are a product of ``x`` and a *gate*, a function of ``x``. Constant factors may stand anywhere in the
product; what is left of them after the pattern stays behind as a factor.

The gates hold an error function, a hyperbolic tangent or a sigmoid, whose last digits depend on who computes them, so
that nobody can rely on the last digits of the product. What consists of sums and products alone (hard swish) has one
right result, and is left as it is spelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import ml_dtypes

from tract_core.data import Constant, DatumType
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Div, Mul
from tract_core.ops.elementwise import (
    ElementWise,
    Erf,
    GeluApproximate,
    GeluExact,
    PowConst,
    Sigmoid,
    Silu,
    Square,
    Tanh,
)
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import op_of, produced_by, read_by, rounds_late, uniform, uniform_operand

ROWS = Rows()


@frozen
class Product:
    """A number times some tensors. ``coefficient``: the number; ``factors``: the tensors."""

    coefficient: float
    factors: tuple[OutletId, ...]


def product_of(model: TypedModel, root: OutletId) -> Product:
    """The factors of ``root``, through multiplications (and divisions by a number) that nothing else reads.

    Numbers are powers of two, which may stand anywhere in a product without changing a digit of it.
    """
    coefficient, factors, pending = 1.0, list[OutletId](), [root]
    while pending and len(factors) <= 2:
        outlet = pending.pop()
        node = model.nodes[outlet.node]
        known = uniform(model, outlet)
        if known is not None and _is_power_of_two(known):
            coefficient *= known
        elif isinstance(node.op, Mul) and (outlet == root or model.single_reader(outlet) is not None):
            pending.extend(node.inputs)
        elif isinstance(node.op, Div) and _is_power_of_two(divisor := uniform(model, node.inputs[1]) or 0.0):
            coefficient /= divisor
            pending.append(node.inputs[0])
        else:
            factors.append(outlet)
    return Product(coefficient, (*factors, *pending))


def _is_power_of_two(number: float) -> bool:
    return abs(math.frexp(number)[0]) == 0.5


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


def near(found: Polynomial | None, wanted: Polynomial, kind: DatumType) -> bool:
    """Whether a polynomial is the wanted one, its coefficients being products of up to two constants of type ``kind``.

    Each constant is the nearest number of its type, so a coefficient is off by one unit in the last place at most.
    """
    if found is None:
        return False
    powers = {power for power, factor in found.items() if factor}
    return powers == wanted.keys() and all(math.isclose(found[p], wanted[p], rel_tol=_unit(kind)) for p in powers)


def _unit(kind: DatumType) -> float:
    """What the numbers 1 and next after 1 of a type differ by."""
    return float(cast("Any", ml_dtypes.finfo(kind.numpy)).eps)


@frozen
class Gate:
    """``gate = scale * f(x)`` where ``x * f(x)`` is what the operator ``op`` computes."""

    op: ElementWise
    scale: float


_ROOT: Final = math.sqrt(2 / math.pi)
_EXACT: Final = {1: math.sqrt(0.5)}
_CUBIC: Final = {1: _ROOT, 3: _ROOT * 0.044715}
_SQUARED: Final = {1: _ROOT, 2: _ROOT * 0.044715}


def _gelu_gate(model: TypedModel, gate: TypedNode, x: OutletId) -> Gate | None:
    """1 + erf(x/sqrt(2)), or 1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)); both are twice what GELU multiplies with"""
    found = uniform_operand(model, gate)
    if found is None or found[1] != 1:
        return None
    inner = produced_by(model, gate.inputs[found[0]], Erf, Tanh)
    if inner is None:
        return None
    inside, kind = polynomial_in(model, inner.inputs[0], x), model.outlet_fact(x).datum_type.storage
    if isinstance(inner.op, Erf):
        return Gate(GeluExact(), 2.0) if near(inside, _EXACT, kind) else None
    if near(inside, _CUBIC, kind):
        return Gate(GeluApproximate(), 2.0)
    return Gate(GeluApproximate(fast_impl=True), 2.0) if near(inside, _SQUARED, kind) else None


def _silu_gate(model: TypedModel, gate: TypedNode, x: OutletId) -> Gate | None:
    """sigmoid(x)"""
    return Gate(Silu(), 1.0) if gate.inputs[0] == x else None


_GATES: Final[dict[type, Callable[[TypedModel, TypedNode, OutletId], Gate | None]]] = {
    Add: _gelu_gate,
    Sigmoid: _silu_gate,
}


@rewrites(Mul)
def spelled_out_activation(model: TypedModel, node: TypedNode, op: Mul) -> ModelPatch | None:
    """GELU or SiLU, spelled out -> the one operator, times what is left of constant factors

    ``x/2 * (1 + erf(x/sqrt(2)))`` -> ``GeluExact(x)``; its tanh form -> ``GeluApproximate(x)``; ``x * sigmoid(x)`` ->
    ``Silu(x)``; each where the constants are these numbers to the last place of their type, and not in f16 and bf16,
    where each operator of the spelled form rounds. What that form multiplies in another order may overflow beyond half
    of the largest number; the operator does not.
    """
    fact = node.outputs[0].fact
    if not fact.datum_type.is_float() or rounds_late(fact) or not _may_have_gate(model, node):
        return None
    if _is_scaled(model, node):
        return None  # the product that holds this one takes in its factor as well
    product = product_of(model, OutletId(node.id))
    for gate, x in _pairs(product):
        recognise = _GATES.get(type(op_of(model, gate)))
        found = recognise(model, model.nodes[gate.node], x) if recognise else None
        if found is None or model.outlet_fact(x).shape != fact.shape:
            continue
        return _activation(model, node, x, found.op, product.coefficient * found.scale)
    return None


def _is_scaled(model: TypedModel, node: TypedNode) -> bool:
    """Whether all that is done with a product is to multiply it with a power of two."""
    reader = read_by(model, OutletId(node.id), Mul, Div)
    found = reader and uniform_operand(model, reader)
    return (
        reader is not None
        and found is not None
        and _is_power_of_two(found[1])
        and (found[0] == 0 or isinstance(reader.op, Mul))
    )


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
