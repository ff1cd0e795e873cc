"""Rules for ranges of an axis."""

from __future__ import annotations

from tract_core.dims import Dim, is_one
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.range import Range
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, produced_by

ROWS = Rows()


@rewrites(Slice)
def remove_slice(model: TypedModel, node: TypedNode, op: Slice) -> ModelPatch | None:
    """Slice(x) of the whole axis -> x"""
    size = model.outlet_fact(node.inputs[0]).shape[op.axis]
    if op.start != 0 or (op.end != size and not model.known.same(op.end, size)):
        return None
    return ModelPatch.shunt_one(model, node)


@rewrites(Slice)
def merge_slices(model: TypedModel, node: TypedNode, op: Slice) -> ModelPatch | None:
    """Slice(Slice(x)) on one axis -> Slice(x)"""
    first = produced_by(model, node.inputs[0], Slice)
    if first is None or first.op.axis != op.axis:
        return None
    start: Dim = first.op.start
    return ModelPatch.replace_op(model, node, Slice(op.axis, start + op.start, start + op.end), first.inputs)


@rewrites(Slice)
def slice_before_broadcast(model: TypedModel, node: TypedNode, op: Slice) -> ModelPatch | None:
    """Slice(MultiBroadcastTo(x)) -> MultiBroadcastTo(x), stretched less far; x is sliced where it is not stretched"""
    stretch = alone_by(model, node.inputs[0], MultiBroadcastTo)
    if stretch is None:
        return None
    narrow = model.outlet_fact(stretch.inputs[0])
    axis = op.axis - (stretch.outputs[0].fact.rank - narrow.rank)
    patch = ModelPatch(model)
    x = patch.tap(stretch.inputs[0])
    if axis >= 0 and not is_one(narrow.shape[axis]):
        x = wire_one(patch.model, f"{node.name}.narrow", Slice(axis, op.start, op.end), x)
    shape = tuple(node.outputs[0].fact.shape)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, MultiBroadcastTo(shape), x))
    return patch


@rewrites(Slice)
def slice_of_range(model: TypedModel, node: TypedNode, op: Slice) -> ModelPatch | None:
    """Slice(Range(start, end, step)) -> a shorter Range that begins later, for integers"""
    numbers = produced_by(model, node.inputs[0], Range)
    if numbers is None or not node.outputs[0].fact.datum_type.is_integer():
        return None
    kind = node.outputs[0].fact.datum_type
    if model.outlet_fact(numbers.inputs[0]).datum_type is not kind or not _is_i64(model, numbers):
        return None
    patch = ModelPatch(model)
    start, step = patch.tap(numbers.inputs[0]), patch.tap(numbers.inputs[2])

    def place(label: str, index: Dim) -> OutletId:
        count = patch.model.add_const(f"{node.name}.{label}", index)
        steps = wire_one(patch.model, f"{node.name}.{label}.steps", Mul(), step, count)
        return wire_one(patch.model, f"{node.name}.{label}.place", Add(), start, steps)

    ends = place("start", op.start), place("end", op.end)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, Range(op.end - op.start), *ends, step))
    return patch


def _is_i64(model: TypedModel, numbers: TypedNode) -> bool:
    """Sizes are i64, and so must be what is added to them."""
    from tract_core.data import DatumType

    return all(model.outlet_fact(outlet).datum_type is DatumType.I64 for outlet in numbers.inputs)


for rule in (remove_slice, merge_slices, slice_before_broadcast, slice_of_range):
    ROWS.add(DECLUTTER, rule.name, rule)
