"""Move axis operators towards the outputs, through every operator that accepts it, so that inverse pairs meet.

What an operator must know for that is a row of the table `RENAME_AXES`. Plugins add those of their own operators. The
keys of the rows here are texts, as this rule looks at every model, and nobody needs all of these operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from tract_core.dims import is_one
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, Reshape, RmAxis
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows, TableKey
from tract_core.rules.pattern import is_known

ROWS = Rows()

T = TypeVar("T")

RenameAxesFn = Callable[[Any, Mapping[int, int], int], "TypedOp | None"]
"""``(op, places, rank) -> op``: the operator for tensors of ``rank`` axes among which the axis ``a`` of now stands at
``places[a]``. An axis that ``places`` lacks has size 1 and goes away; one that nothing is mapped to has size 1 and is
new. ``None`` when the operator needs an axis that goes away."""

RENAME_AXES: TableKey[type[TypedOp], RenameAxesFn] = TableKey(
    "rename_axes", "the operator for inputs whose axes stand elsewhere, where axes keep their places through it"
)
"""For operators whose inputs of the output's rank, and outputs, have their axes in the same places. Inputs of other
ranks are left alone."""


def _ops(*keys: str) -> list[str]:
    return [f"tract_core.ops.{key}" for key in keys]


@ROWS.row(RENAME_AXES, *_ops("elementwise:ElementWise", "cast:Cast", "binary:Binary", "iff:Iff"))
def no_axes(op: TypedOp, places: Mapping[int, int], rank: int) -> TypedOp:
    """Nothing to rename: operators without any axis among their attributes may also be taken through a reshape."""
    return op


@ROWS.row(RENAME_AXES, *_ops("slice:Slice", "slice:DynSlice", "concat:TypedConcat", "downsample:Downsample"))
@ROWS.row(RENAME_AXES, *_ops("cumsum:Running", "norm:RmsNorm", "topk:Topk"))
def one_axis(op: Any, places: Mapping[int, int], rank: int) -> TypedOp | None:
    """The one axis that it works along."""
    return replace(op, axis=places[op.axis]) if op.axis in places else None


@ROWS.row(RENAME_AXES, *_ops("softmax:Softmax", "softmax:LogSoftmax", "reduce:Reduce"))
def several_axes(op: Any, places: Mapping[int, int], rank: int) -> TypedOp | None:
    """The axes that it works along, in ascending order."""
    if any(axis not in places for axis in op.axes):
        return None
    return replace(op, axes=tuple(sorted(places[axis] for axis in op.axes)))


@ROWS.row(RENAME_AXES, *_ops("pad:Pad"))
def pads(op: Any, places: Mapping[int, int], rank: int) -> TypedOp | None:
    """The pads of each axis."""
    found = _per_axis(op.pads, places, rank, (0, 0))
    return None if found is None else replace(op, pads=found)


@ROWS.row(RENAME_AXES, *_ops("tile:Tile"))
def multipliers(op: Any, places: Mapping[int, int], rank: int) -> TypedOp | None:
    """The multiplier of each axis."""
    found = _per_axis(op.multipliers, places, rank, 1)
    return None if found is None else replace(op, multipliers=found)


def _per_axis(values: Sequence[T], places: Mapping[int, int], rank: int, neutral: T) -> tuple[T, ...] | None:
    """Values that go with the axes; ``None`` when an axis that goes away has another one than ``neutral``."""
    found = [neutral] * rank
    for axis, value in enumerate(values):
        if axis in places:
            found[places[axis]] = value
        elif value != neutral:
            return None
    return tuple(found)


@rewrites(ANY_OP)
def axis_op_after(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """f(AxisOp(x)) -> AxisOp(f(x)), when only f reads that; other inputs are constants or go the same way"""
    change = _change(model, node)
    if change is None:
        return None
    row = model.registry[RENAME_AXES].find(type(node.op))
    if row is None or (isinstance(change, Reshape) and row is not no_axes):
        return None
    rank = node.outputs[0].fact.rank
    if any(outlet.fact.rank != rank for outlet in node.outputs):
        return None
    reshaped = isinstance(change, Reshape)
    renamed = op if reshaped else model.registry.answer(RENAME_AXES, op, *_places(change, rank))
    return None if renamed is None else _moved(model, node, renamed, change)


def _change(model: TypedModel, node: TypedNode) -> AxisOp | None:
    """The axis operator in front of ``node``, if all inputs can do without it."""
    found: AxisOp | None = None
    for outlet in node.inputs:
        producer = model.nodes[outlet.node].op
        if isinstance(producer, AxisOp) and model.outlet_fact(outlet).rank == node.outputs[0].fact.rank:
            found = producer
            break
    if found is None or isinstance(node.op, AxisOp):
        return None
    return found if all(_can_do_without(model, node, outlet, found) for outlet in set(node.inputs)) else None


def _can_do_without(model: TypedModel, node: TypedNode, outlet: OutletId, change: AxisOp) -> bool:
    fact = model.outlet_fact(outlet)
    if fact.rank != node.outputs[0].fact.rank:
        return True
    if model.nodes[outlet.node].op == change:
        only_reader = all(inlet.node == node.id for inlet in model.outlet(outlet).successors)
        return only_reader and outlet not in model.outputs
    if not is_known(model, outlet):
        return False
    if isinstance(change, AddAxis):
        return is_one(fact.shape[change.axis])
    return not isinstance(change, Reshape) or all(is_one(dim) for dim in fact.shape)


def _places(change: AxisOp, rank: int) -> tuple[dict[int, int], int]:
    """Where each of ``rank`` axes stood before the change, and how many there were."""
    if isinstance(change, AddAxis):
        return {axis: axis - (axis > change.axis) for axis in range(rank) if axis != change.axis}, rank - 1
    if isinstance(change, RmAxis):
        return {axis: axis + (axis >= change.axis) for axis in range(rank)}, rank + 1
    if isinstance(change, MoveAxis):
        return dict(enumerate(change.permutation(rank))), rank
    raise FactError(f"{change.name} has no places")


def _moved(model: TypedModel, node: TypedNode, op: TypedOp, change: AxisOp) -> ModelPatch | None:
    patch = ModelPatch(model)
    inputs = [_before(model, patch, node, outlet, change) for outlet in node.inputs]
    outlets = patch.wire(f"{node.name}.inner" if len(node.outputs) == 1 else node.name, op, inputs)
    for slot, (old, inner) in enumerate(zip(node.outlets(), outlets, strict=True)):
        name = node.name if slot == 0 else f"{node.name}.{slot}"
        result = wire_one(patch.model, name, change, inner)
        if patch.fact(result).shape != node.outputs[slot].fact.shape:
            return None
        patch.shunt(old, result)
    return patch


def _before(model: TypedModel, patch: ModelPatch, node: TypedNode, outlet: OutletId, change: AxisOp) -> OutletId:
    """The input as it is without the change."""
    fact = model.outlet_fact(outlet)
    if fact.rank != node.outputs[0].fact.rank:
        return patch.tap(outlet)
    producer = model.nodes[outlet.node]
    if producer.op == change:
        return patch.tap(producer.inputs[0])
    undo = inverse(change)
    if isinstance(change, Reshape) and isinstance(undo, Reshape):
        ones = (1,) * len(change.before)
        undo = Reshape(change.at, (1,) * len(change.after), ones)
    return wire_one(patch.model, f"{producer.name}.before", undo, patch.tap(outlet))


def inverse(change: AxisOp) -> AxisOp:
    """The axis operator that undoes another one."""
    return _INVERSE[type(change)](change)


_INVERSE: Final[dict[type[AxisOp], Callable[[Any], AxisOp]]] = {
    AddAxis: lambda op: RmAxis(op.axis),
    RmAxis: lambda op: AddAxis(op.axis),
    MoveAxis: lambda op: MoveAxis(op.target, op.source),
    Reshape: lambda op: Reshape(op.at, op.after, op.before),
}


ROWS.add(DECLUTTER, axis_op_after.name, axis_op_after)
