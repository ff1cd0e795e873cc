"""Compute, before the model runs, what does not depend on its inputs."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from tract_core.data import Constant, DatumType, DType, SymbolicArray
from tract_core.data.text_bytes import text_bytes
from tract_core.dims import is_symbolic
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, rewrites
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode, evaluate_values
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows, key_text

ROWS = Rows()

FOLD_BYTES: Final = 4 << 20
"""A folded result may always take this many bytes. A larger one may take as many as the constants that go with it."""

VIEWS: Final = "tract_core.ops.axis:AxisOp", "tract_core.ops.slice:Slice"
"""Operators whose result mostly is a view of their input, which takes no memory."""


@rewrites(ANY_OP)
def known_value(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """A node whose value is known -> `Const`; not for sizes of another type than i64, or that only a run tells"""
    value = node.outputs[0].fact.value
    if value is None or not op.pure or isinstance(op, (Const, TypedSource)) or len(node.outputs) != 1:
        return None
    if isinstance(value, SymbolicArray):
        is_i64 = node.outputs[0].fact.datum_type is DatumType.I64
        if not (is_i64 and value.symbols() <= model.given_symbols()):
            return None
    return ModelPatch.replace_op(model, node, Const(value), inputs=())


@rewrites(ANY_OP)
def fold_constants(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """A pure node that reads constants only -> `Const`, unless that takes much more memory than the constants"""
    values: list[Constant] = []
    for number, slot in node.inputs:  # what nearly always says no comes first
        value = model.nodes[number].outputs[slot].fact.value
        if not isinstance(value, Constant):
            return None
        values.append(value)
    if not op.pure or (op.unpacks and _takes_more(model, node)):
        return None
    if not values or len(node.outputs) != 1 or not _of_arrays(node.outputs[0].fact.datum_type):
        return None
    in_budget = _within_budget(model, node)
    if not (in_budget or _gives_a_view(op)) or (in_budget and not _take_budget(model, node)):
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


def _takes_more(model: TypedModel, node: TypedNode) -> bool:
    """Whether the result takes more memory than what it is computed from; never where it is one element."""
    fact = node.outputs[0].fact
    volume = fact.shape.volume
    if is_symbolic(volume) or volume == 1:
        return volume != 1
    read = [model.outlet_fact(outlet).value for outlet in node.inputs]
    return int(volume) * fact.datum_type.itemsize > sum(_bytes(one) for one in read if isinstance(one, Constant))


def _gives_a_view(op: TypedOp) -> bool:
    return any(key_text(base) in VIEWS for base in type(op).__mro__)


def _of_arrays(kind: DType) -> bool:
    """Whether a `Const` may be of this type. A `Const` holds an array, and no array says that it is quantised."""
    return isinstance(kind, DatumType) and kind is not DatumType.TDIM


def _within_budget(model: TypedModel, node: TypedNode) -> bool:
    """Whether the result is small: of few bytes, or no larger than the constants that nothing else reads.

    Larger than these in bytes, or, as where a cast makes each element larger, in elements.
    """
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
    """What a constant takes in memory, in bytes. An element that a stride of 0 repeats counts once."""
    array = constant.array
    held = [size for size, stride in zip(array.shape, array.strides, strict=True) if stride]
    return prod(held) * array.itemsize


for rule in (known_value, fold_constants):
    ROWS.add(DECLUTTER, rule.name, rule)
