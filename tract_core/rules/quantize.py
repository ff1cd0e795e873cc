"""Rules for quantised arithmetic."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode, evaluate_values
from tract_core.ops.binary import Binary
from tract_core.ops.elementwise import ElementWise
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QScale, QuantizeLinear, Scale
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import uniform, uniform_operand

ROWS = Rows()

_BYTES: Final = (DatumType.U8, DatumType.I8)

LONGEST: Final = 32
"""So many operators between dequantisation and quantisation are looked at."""


@rewrites(QuantizeLinear)
def table_of_bytes(model: TypedModel, node: TypedNode, op: QuantizeLinear) -> ModelPatch | None:
    """QuantizeLinear(f(DequantizeLinear(x))) of bytes, f element by element -> LookupTable(x), or x itself"""
    if op.to not in _BYTES or not _is_scalar(model, node):
        return None
    row = _row(model, node)
    if row is None or model.outlet_fact(row[-1].inputs[0]).datum_type not in _BYTES:
        return None
    source = row[-1].inputs[0]
    table = _table(model, row, model.outlet_fact(source).datum_type.numpy)
    if table is None:
        return None
    every = np.arange(256, dtype=np.uint8)
    if model.outlet_fact(source).datum_type is op.to and np.array_equal(table.array.view(np.uint8), every):
        return ModelPatch.shunt_one(model, node, source)
    return ModelPatch.replace_op(model, node, LookupTable(table), [source])


def _is_scalar(model: TypedModel, node: TypedNode) -> bool:
    """Whether scale and zero point are one known number each."""
    return all(fact.rank == 0 and isinstance(fact.value, Constant) for fact in model.input_facts(node)[1:])


def _row(model: TypedModel, last: TypedNode) -> list[TypedNode] | None:
    """From ``last`` back to a dequantisation, operators on single elements only."""
    row = [last]
    for _ in range(LONGEST):
        slot = _varying(model, row[-1])
        if slot is None:
            return None
        before = model.nodes[row[-1].inputs[slot].node]
        row.append(before)
        if isinstance(before.op, DequantizeLinear):
            return row if _is_scalar(model, before) else None
        if not isinstance(before.op, (ElementWise, Binary)) or model.single_reader(OutletId(before.id)) is None:
            return None
    return None


def _varying(model: TypedModel, node: TypedNode) -> int | None:
    """The input that is not a number; ``None`` when the others are more than numbers."""
    if not isinstance(node.op, Binary):
        return 0
    found = uniform_operand(model, node)
    if found is None or model.outlet_fact(node.inputs[found[0]]).shape != node.outputs[0].fact.shape:
        return None
    return found[0]


def _table(model: TypedModel, row: list[TypedNode], kind: np.dtype[np.generic]) -> Constant | None:
    """What the row makes of every byte, in the order of their bits."""
    held = Constant(np.arange(256, dtype=np.uint8).view(kind))
    for node in reversed(row):
        inputs = [_as_vector(model, outlet, node.op) for outlet in node.inputs]
        inputs[_varying(model, node) or 0] = held
        known = [one for one in inputs if one is not None]
        result = evaluate_values(model.registry, node.op, known) if len(known) == len(inputs) else None
        if not isinstance(result, Constant):
            return None
        held = result
    return held if held.array.shape == (256,) else None


def _as_vector(model: TypedModel, outlet: OutletId, op: TypedOp) -> Constant | None:
    """A known number, of the rank that the operator wants beside a vector."""
    value = model.outlet_fact(outlet).value
    if not isinstance(value, Constant):
        return None
    return Constant(value.array.reshape(-1)[:1]) if isinstance(op, Binary) else value


@rewrites(Scale)
def fixed_point_scale(model: TypedModel, node: TypedNode, op: Scale) -> ModelPatch | None:
    """Scale(1, x) -> x; Scale(factor, x) of i32 -> QScale(x), where 31 binary digits hold the factor"""
    factor = uniform(model, node.inputs[0])
    fact = model.outlet_fact(node.inputs[1])
    if factor is None or fact.shape != node.outputs[0].fact.shape:
        return None
    if factor == 1.0:
        return ModelPatch.shunt_one(model, node, node.inputs[1])
    if fact.datum_type is not DatumType.I32 or not np.isfinite(factor) or not _has_31_digits(float(factor)):
        return None
    return ModelPatch.replace_op(model, node, QScale.of(float(factor)), node.inputs[1:])


def _has_31_digits(factor: float) -> bool:
    return (math.frexp(factor)[0] * 2**31).is_integer()


for rule in (table_of_bytes, fixed_point_scale):
    ROWS.add(DECLUTTER, rule.name, rule)
