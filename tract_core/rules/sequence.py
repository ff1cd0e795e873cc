"""Rules for sequences and optionals whose contents are known: what goes in comes out."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis
from tract_core.ops.concat import TypedConcat
from tract_core.ops.optional import OptionalConstruct, OptionalGetElement
from tract_core.ops.sequence import ConcatFromSequence, SequenceAt, SequenceConstruct
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import produced_by

ROWS = Rows()


@rewrites(SequenceAt)
def item_of_construct(model: TypedModel, node: TypedNode, op: SequenceAt) -> ModelPatch | None:
    """SequenceAt of SequenceConstruct, at a known position -> the value at that position"""
    made, position = produced_by(model, node.inputs[0], SequenceConstruct), model.constant(node.inputs[1])
    if made is None or position is None:
        return None
    place = int(position.reshape(()))
    if not -len(made.inputs) <= place < len(made.inputs):
        return None  # the node reports it when it runs
    return ModelPatch.shunt_one(model, node, made.inputs[place])


@rewrites(ConcatFromSequence)
def concat_of_construct(model: TypedModel, node: TypedNode, op: ConcatFromSequence) -> ModelPatch | None:
    """ConcatFromSequence of SequenceConstruct -> TypedConcat"""
    made = produced_by(model, node.inputs[0], SequenceConstruct)
    if made is None or not made.inputs:
        return None
    patch = ModelPatch(model)
    pieces = [patch.tap(outlet) for outlet in made.inputs]
    if op.new_axis:
        pieces = [
            wire_one(patch.model, f"{node.name}.piece{slot}", AddAxis(op.axis), piece)
            for slot, piece in enumerate(pieces)
        ]
    (joined,) = patch.wire(node.name, TypedConcat(op.axis), pieces)
    patch.shunt(OutletId(node.id), joined)
    return patch


@rewrites(OptionalGetElement)
def element_of_construct(model: TypedModel, node: TypedNode, op: OptionalGetElement) -> ModelPatch | None:
    """OptionalGetElement of OptionalConstruct -> the value"""
    made = produced_by(model, node.inputs[0], OptionalConstruct)
    return None if made is None else ModelPatch.shunt_one(model, node, made.inputs[0])


for rule in (item_of_construct, concat_of_construct, element_of_construct):
    ROWS.add(DECLUTTER, rule.name, rule)
