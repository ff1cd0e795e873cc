"""Rules for conversions between element types."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType, DType
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.cast import AsQuantized, Cast
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import produced_by

ROWS = Rows()

T = DatumType

_WIDER: Final[dict[DatumType, frozenset[DatumType]]] = {
    T.BF16: frozenset({T.F32, T.F64}),
    T.F16: frozenset({T.F32, T.F64}),
    T.F32: frozenset({T.F64}),
    T.I8: frozenset({T.I16, T.I32, T.I64}),
    T.I16: frozenset({T.I32, T.I64}),
    T.I32: frozenset({T.I64}),
    T.U8: frozenset({T.U16, T.U32, T.U64, T.I16, T.I32, T.I64}),
    T.U16: frozenset({T.U32, T.U64, T.I32, T.I64}),
    T.U32: frozenset({T.U64, T.I64}),
}
"""For each type, those of its kind that hold every one of its values."""


@rewrites(Cast)
def remove_cast(model: TypedModel, node: TypedNode, op: Cast) -> ModelPatch | None:
    """Cast(x) into the type that x has -> x"""
    if model.outlet_fact(node.inputs[0]).datum_type != op.to:
        return None
    return ModelPatch.shunt_one(model, node)


@rewrites(Cast)
def merge_casts(model: TypedModel, node: TypedNode, op: Cast) -> ModelPatch | None:
    """Cast(Cast(x)) -> Cast(x), when the first one goes into a wider type of the same kind and so loses nothing

    Not into texts, which have as many digits as tell a number from the others of its type.
    """
    first = produced_by(model, node.inputs[0], Cast)
    if first is None or op.to is DatumType.STRING:
        return None
    if not holds(model.outlet_fact(node.inputs[0]).datum_type, model.outlet_fact(first.inputs[0]).datum_type):
        return None
    return ModelPatch.replace_op(model, node, op, first.inputs)


@rewrites(Cast)
def stored_integers(model: TypedModel, node: TypedNode, op: Cast) -> ModelPatch | None:
    """Cast(AsQuantized(x)) into the type in which it is stored -> x"""
    first = produced_by(model, node.inputs[0], AsQuantized)
    if first is None or model.outlet_fact(first.inputs[0]).datum_type != op.to:
        return None
    return ModelPatch.shunt_one(model, node, first.inputs[0])


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of the type ``narrow`` is a value of ``wide``."""
    return isinstance(narrow, DatumType) and wide in _WIDER.get(narrow, ())


for rule in (remove_cast, merge_casts, stored_integers):
    ROWS.add(DECLUTTER, rule.name, rule)
