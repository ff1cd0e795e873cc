"""Rules for quantised arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from tract_core.rules.pattern import produced_by, uniform

ROWS = Rows()

_BYTES: Final = (DatumType.U8, DatumType.I8)

LONGEST: Final = 32
"""So many operators between dequantisation and quantisation are looked at."""


@rewrites(QuantizeLinear)
def table_of_bytes(model: TypedModel, node: TypedNode, op: QuantizeLinear) -> ModelPatch | None:
    """QuantizeLinear(f(DequantizeLinear(x))) of bytes, f element by element -> LookupTable(x), or x itself

    x may be read in several ways, also through tables: a SiLU whose sigmoid is rounded to bytes is one table.
    """
    if op.to not in _BYTES or not _is_scalar(model, node):
        return None
    nodes = _from_bytes(model, node)
    source = None if nodes is None else _source(model, nodes)
    if source is None:
        return None
    every = np.arange(256, dtype=np.uint8)
    bytes_of_source = Constant(every.view(model.outlet_fact(source).datum_type.numpy))
    table = _entries(model, OutletId(node.id), {source: bytes_of_source})
    if table is None:
        return None
    if model.outlet_fact(source).datum_type is op.to and np.array_equal(table.array.view(np.uint8), every):
        return ModelPatch.shunt_one(model, node, source)
    return ModelPatch.replace_op(model, node, LookupTable(table), [source])


def _is_scalar(model: TypedModel, node: TypedNode) -> bool:
    """Whether scale and zero point are one known number each."""
    return all(fact.rank == 0 and isinstance(fact.value, Constant) for fact in model.input_facts(node)[1:])


def _from_bytes(model: TypedModel, last: TypedNode) -> Mapping[int, TypedNode] | None:
    """From ``last`` back to what dequantises bytes, by ids: operators on single elements that nothing else reads."""
    found, pending = {last.id: last}, [last]
    while pending:
        node = pending.pop()
        for slot in _varying(model, node):
            before = model.nodes[node.inputs[slot].node]
            if before.id in found:
                continue
            if not isinstance(before.op, (ElementWise, Binary, DequantizeLinear)) or len(found) > LONGEST:
                return None
            found[before.id] = before
            if not isinstance(before.op, DequantizeLinear):
                pending.append(before)
    ends = [node for node in found.values() if isinstance(node.op, DequantizeLinear)]
    inner = [node for node in found.values() if node is not last and node not in ends]
    are_bytes = all(_is_scalar(model, one) and model.outlet_fact(one.inputs[0]).datum_type in _BYTES for one in ends)
    return found if ends and are_bytes and all(_is_read_within(model, one, found) for one in inner) else None


def _is_read_within(model: TypedModel, node: TypedNode, nodes: Mapping[int, TypedNode]) -> bool:
    """Whether only these nodes read what one of them makes."""
    outlet = OutletId(node.id)
    return outlet not in model.outputs and all(one.node in nodes for one in model.outlet(outlet).successors)


def _varying(model: TypedModel, node: TypedNode) -> list[int]:
    """The inputs that are no numbers."""
    if not isinstance(node.op, Binary):
        return [0]
    return [slot for slot, outlet in enumerate(node.inputs) if uniform(model, outlet) is None]


def _source(model: TypedModel, nodes: Mapping[int, TypedNode]) -> OutletId | None:
    """The one tensor of bytes that all is made of: what is dequantised, or what tables make that of."""
    read = {node.inputs[0] for node in nodes.values() if isinstance(node.op, DequantizeLinear)}
    if len(read) > 1:
        read = {_before_tables(model, outlet) for outlet in read}
    return read.pop() if len(read) == 1 else None


def _before_tables(model: TypedModel, outlet: OutletId) -> OutletId:
    while (before := produced_by(model, outlet, LookupTable)) is not None:
        outlet = before.inputs[0]
    return outlet


def _entries(model: TypedModel, outlet: OutletId, made: dict[OutletId, Constant | None]) -> Constant | None:
    """What is made of every byte, in the order of their bits; ``None`` where elements meet others than their own.

    ``made``: of tensors, at first of the bytes alone.
    """
    if outlet in made:
        return made[outlet]
    made[outlet] = None
    if model.outlet_fact(outlet).shape != model.outlet_fact(next(iter(made))).shape:
        return None
    node = model.nodes[outlet.node]
    inputs = [_as_vector(model, one, node.op) for one in node.inputs]
    for slot in _varying(model, node):
        inputs[slot] = _entries(model, node.inputs[slot], made)
    known = [one for one in inputs if one is not None]
    result = evaluate_values(model.registry, node.op, known) if len(known) == len(inputs) else None
    if isinstance(result, Constant) and result.array.shape == (256,):
        made[outlet] = result
    return made[outlet]


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
