"""Move operators on axes, as transpositions, towards the outputs, so that those that undo each other meet and go.

One moves through the operator behind it where that has a row in the table `RENAME_AXES`: the same operator, for axes
that stand elsewhere. Plugins add rows for operators of their own. The keys of the rows here are texts, so that this
rule, which looks at every model, imports no operator that a model does not have.
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
"""``(op, places, rank) -> op``: the operator that does to tensors of ``rank`` axes what ``op`` does to its own.

What is axis ``a`` for ``op`` is axis ``places[a]`` there. An axis that ``places`` lacks is gone there: its size was 1.
An axis there that is no value of ``places`` is new, of size 1. ``None`` when ``op`` cannot do without an axis.
"""

RENAME_AXES: TableKey[type[TypedOp], RenameAxesFn] = TableKey(
    "rename_axes", "the same operator for inputs whose axes stand elsewhere"
)
"""Rows are for operators through which axes keep their places: axis 1 of the input is axis 1 of the output. That holds
for the inputs of the rank of the output; inputs of other ranks stay as they are."""


def _ops(*keys: str) -> list[str]:
    return [f"tract_core.ops.{key}" for key in keys]


@ROWS.row(RENAME_AXES, *_ops("elementwise:ElementWise", "cast:Cast", "cast:AsQuantized", "binary:Binary", "iff:Iff"))
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
    """f(AxisOp(x)) -> AxisOp(f(x)), when nothing else reads AxisOp(x); other inputs are constants, or AxisOp(y) too"""
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
    """The operator on axes in front of ``node``, if it can be taken away from all inputs."""
    found: AxisOp | None = None
    for outlet in node.inputs:
        producer = model.nodes[outlet[0]].op
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
    """For each of ``rank`` axes, its place before the change, and how many axes there were then."""
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
    """What takes the place of an input when the change is not in front of it any more."""
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
