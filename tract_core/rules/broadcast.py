"""Rules for stretched tensors: a stretch moves towards the outputs until an operator stretches by itself."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim
from tract_core.errors import TractError
from tract_core.model.fact import ShapeFact
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, RmAxis
from tract_core.ops.binary import Binary
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import ElementWise
from tract_core.ops.expect import broadcast_shapes
from tract_core.ops.wiring import wire_one, wire_rank
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, is_known, produced_by

ROWS = Rows()


@rewrites(MultiBroadcastTo)
def remove_broadcast(model: TypedModel, node: TypedNode, op: MultiBroadcastTo) -> ModelPatch | None:
    """MultiBroadcastTo(x) into the shape that x has -> x"""
    if tuple(model.outlet_fact(node.inputs[0]).shape) != tuple(node.outputs[0].fact.shape):
        return None
    return ModelPatch.shunt_one(model, node)


@rewrites(MultiBroadcastTo)
def whole_shape(model: TypedModel, node: TypedNode, op: MultiBroadcastTo) -> ModelPatch | None:
    """MultiBroadcastTo(x) into a shape that x itself stretches -> into the one that comes of it"""
    shape = op.whole_shape(model.outlet_fact(node.inputs[0]))
    return None if shape == op.shape else ModelPatch.replace_op(model, node, MultiBroadcastTo(shape), node.inputs)


@rewrites(MultiBroadcastTo)
def merge_broadcasts(model: TypedModel, node: TypedNode, op: MultiBroadcastTo) -> ModelPatch | None:
    """MultiBroadcastTo(MultiBroadcastTo(x)) -> MultiBroadcastTo(x)"""
    first = produced_by(model, node.inputs[0], MultiBroadcastTo)
    if first is None:
        return None
    return ModelPatch.replace_op(model, node, MultiBroadcastTo(tuple(node.outputs[0].fact.shape)), first.inputs)


@rewrites(ElementWise, Cast)
def elementwise_before_broadcast(model: TypedModel, node: TypedNode, op: ElementWise | Cast) -> ModelPatch | None:
    """f(MultiBroadcastTo(x)) -> MultiBroadcastTo(f(x)), when nothing else reads the stretched tensor"""
    stretch = alone_by(model, node.inputs[0], MultiBroadcastTo)
    if stretch is None:
        return None
    patch = ModelPatch(model)
    inner = wire_one(patch.model, f"{node.name}.narrow", op, patch.tap(stretch.inputs[0]))
    result = wire_one(patch.model, node.name, MultiBroadcastTo(tuple(node.outputs[0].fact.shape)), inner)
    patch.shunt(OutletId(node.id), result)
    return patch


@rewrites(AxisOp)
def axis_op_before_broadcast(model: TypedModel, node: TypedNode, op: AxisOp) -> ModelPatch | None:
    """AxisOp(MultiBroadcastTo(x)) -> MultiBroadcastTo(AxisOp(x)), when nothing else reads the stretched tensor"""
    stretch = alone_by(model, node.inputs[0], MultiBroadcastTo) if isinstance(op, (AddAxis, RmAxis, MoveAxis)) else None
    if stretch is None:
        return None
    patch = ModelPatch(model)
    narrow = wire_rank(patch.model, stretch.name, patch.tap(stretch.inputs[0]), stretch.outputs[0].fact.rank)
    inner = wire_one(patch.model, f"{node.name}.narrow", op, narrow)
    result = wire_one(patch.model, node.name, MultiBroadcastTo(tuple(node.outputs[0].fact.shape)), inner)
    patch.shunt(OutletId(node.id), result)
    return patch


@rewrites(Binary)
def broadcast_in_binary(model: TypedModel, node: TypedNode, op: Binary) -> ModelPatch | None:
    """f(MultiBroadcastTo(a), b) -> f(a, b), when b alone stretches a as far"""
    for slot, outlet in enumerate(node.inputs):
        stretch = produced_by(model, outlet, MultiBroadcastTo)
        if stretch is None:
            continue
        rank = node.outputs[0].fact.rank
        narrow = (1,) * (rank - model.outlet_fact(stretch.inputs[0]).rank) + model.outlet_fact(stretch.inputs[0]).shape
        other = model.outlet_fact(node.inputs[1 - slot]).shape
        if not _gives(op, [narrow, other], node.outputs[0].fact.shape):
            continue
        patch = ModelPatch(model)
        inputs = [patch.tap(outlet) for outlet in node.inputs]
        inputs[slot] = wire_rank(patch.model, f"{stretch.name}.narrow", patch.tap(stretch.inputs[0]), rank)
        patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, op, *inputs))
        return patch
    return None


@rewrites(Binary)
def known_operand_before_broadcast(model: TypedModel, node: TypedNode, op: Binary) -> ModelPatch | None:
    """f(MultiBroadcastTo(x), constant) -> MultiBroadcastTo(f(x, constant)), where that computes fewer floats"""
    for slot, outlet in enumerate(node.inputs):
        stretch, other = alone_by(model, outlet, MultiBroadcastTo), node.inputs[1 - slot]
        # Of integers, a division might be by a zero that a tensor without elements never comes to.
        if stretch is None or not is_known(model, other) or not model.outlet_fact(outlet).datum_type.is_float():
            continue
        wide, rank = node.outputs[0].fact.shape, node.outputs[0].fact.rank
        patch = ModelPatch(model)
        inputs = [patch.tap(one) for one in node.inputs]
        inputs[slot] = wire_rank(patch.model, f"{stretch.name}.narrow", patch.tap(stretch.inputs[0]), rank)
        inner = wire_one(patch.model, f"{node.name}.narrow", op, *inputs)
        if patch.fact(inner).shape == wide:
            continue
        patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, MultiBroadcastTo(tuple(wide)), inner))
        return patch
    return None


def _gives(op: Binary, shapes: Sequence[Sequence[Dim]], wanted: Sequence[Dim]) -> bool:
    try:
        return tuple(broadcast_shapes(op, [ShapeFact(shape) for shape in shapes])) == tuple(wanted)
    except TractError:
        return False


for rule in (
    remove_broadcast,
    whole_shape,
    merge_broadcasts,
    elementwise_before_broadcast,
    axis_op_before_broadcast,
    broadcast_in_binary,
    known_operand_before_broadcast,
):
    ROWS.add(DECLUTTER, rule.name, rule)
