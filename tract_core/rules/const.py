"""Compute early what does not depend on the model's inputs."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from tract_core.data import Constant, DatumType, DType, SymbolicArray
from tract_core.data.text_bytes import text_bytes
from tract_core.dims import is_symbolic
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, rewrites
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode, evaluate_values
from tract_core.ops.axis import AxisOp
from tract_core.ops.slice import Slice
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()

FOLD_BYTES: Final = 4 << 20
"""A folded result may always take this many bytes; beyond, only what the inputs that it makes superfluous allow."""

VIEWS: Final = (AxisOp, Slice)
"""Operators whose result usually is a view of their input, and then takes no memory at all."""


@rewrites(ANY_OP)
def known_value(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """A node whose value is known -> `Const`, unless it is sizes that are no i64 or that only running the node tells"""
    if isinstance(op, (Const, TypedSource)) or len(node.outputs) != 1:
        return None
    value = node.outputs[0].fact.value
    if value is None or not op.pure:
        return None
    if isinstance(value, SymbolicArray):
        is_i64 = node.outputs[0].fact.datum_type is DatumType.I64
        if not (is_i64 and value.symbols() <= model.given_symbols()):
            return None
    return ModelPatch.replace_op(model, node, Const(value), inputs=())


@rewrites(ANY_OP)
def fold_constants(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """A pure node that reads constants only -> `Const`, unless that would unfold a small constant into a large one"""
    if not node.inputs or len(node.outputs) != 1 or not op.pure or not _of_arrays(node.outputs[0].fact.datum_type):
        return None
    values: list[Constant] = []
    for outlet in node.inputs:
        value = model.nodes[outlet.node].outputs[outlet.slot].fact.value
        if not isinstance(value, Constant):
            return None
        values.append(value)
    in_budget = _within_budget(model, node)
    if not (in_budget or isinstance(op, VIEWS)) or (in_budget and not _take_budget(model, node)):
        return None
    folded = evaluate_values(model.registry, op, values)
    fact = node.outputs[0].fact
    if not isinstance(folded, Constant) or folded.datum_type != fact.datum_type.storage:
        return None
    if fact.shape.same(folded.array.shape) is False:
        return None  # what the model says of the result is not true, which the run reports
    if text_bytes(folded.array) > max(FOLD_BYTES, *(text_bytes(value.array) for value in values)):
        return None
    if not in_budget and not np.may_share_memory(folded.array, values[0].array):
        return None
    return ModelPatch.replace_op(model, node, Const(folded), inputs=())


def _of_arrays(kind: DType) -> bool:
    """Whether an array alone says that it is of a type, so that a `Const` may be: none says that it is quantised."""
    return isinstance(kind, DatumType) and kind is not DatumType.TDIM


def _within_budget(model: TypedModel, node: TypedNode) -> bool:
    """Few bytes; or no more bytes, or no more elements in another type, than those that nothing else reads."""
    fact = node.outputs[0].fact
    volume = fact.shape.volume
    if is_symbolic(volume):
        return False
    size = int(volume) * fact.datum_type.itemsize
    if size <= FOLD_BYTES:
        return True
    freed = [constant for outlet in node.inputs if (constant := _freed(model, outlet)) is not None]
    return size <= sum(map(_bytes, freed)) or int(volume) <= max((one.array.size for one in freed), default=0)


def _take_budget(model: TypedModel, node: TypedNode) -> bool:
    """Count what folding the node takes, and the constants that it frees. Returns whether the limits allow it."""
    freed = sum(_bytes(one) for outlet in node.inputs if (one := _freed(model, outlet)) is not None)
    return model.take_budget(node.op, model.input_facts(node), node.outputs[0].fact, freed=freed)


def _freed(model: TypedModel, outlet: OutletId) -> Constant | None:
    value = model.outlet_fact(outlet).value
    alone = len(model.outlet(outlet).successors) == 1
    return value if alone and isinstance(value, Constant) else None


def _bytes(constant: Constant) -> int:
    """What the constant takes in memory: elements that are repeated by strides of 0 do not count."""
    array = constant.array
    held = [size for size, stride in zip(array.shape, array.strides, strict=True) if stride]
    return prod(held) * array.itemsize


for rule in (known_value, fold_constants):
    ROWS.add(DECLUTTER, rule.name, rule)
