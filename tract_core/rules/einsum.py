"""Rules for sums of products: axis operators and stretches around them become part of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tract_core.dims import Dim, is_one, product
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.graph import Node, OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, Reshape, RmAxis, moves_for
from tract_core.ops.binary import Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.einsum import EinSum
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, is_known, node_of, produced_by, rounds_late, uniform_operand

ROWS = Rows()


@rewrites(EinSum)
def axis_op_into_einsum(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(AxisOp(x), y) -> EinSum(x, y) over other axes, a new or merged axis of the output being made behind it"""
    if op.q_output is not None:
        return None
    for slot, outlet in enumerate(node.inputs):
        change = produced_by(model, outlet, AxisOp)
        if change is None or _repeats(op.axes.inputs[slot]):
            continue
        term = op.axes.inputs[slot]
        if isinstance(change.op, MoveAxis):
            taken = [""] * len(term)
            for place, axis in enumerate(change.op.permutation(len(term))):
                taken[axis] = term[place]
            return _rewired(model, node, op, op.axes.with_input(slot, "".join(taken)), {slot: change.inputs[0]})
        if isinstance(change.op, RmAxis):
            axis = change.op.axis
            longer = term[:axis] + op.axes.free_name() + term[axis:]
            return _rewired(model, node, op, op.axes.with_input(slot, longer), {slot: change.inputs[0]})
        if isinstance(change.op, AddAxis):
            return _without_new_axis(model, node, op, slot, change)
        merged = node_of(change, Reshape)
        patch = merged and _split_merged_axis(model, node, op, slot, merged)
        if patch is not None:
            return patch
    return None


def _repeats(term: str) -> bool:
    return len(set(term)) < len(term)


def _without_new_axis(model: TypedModel, node: TypedNode, op: EinSum, slot: int, change: TypedNode) -> ModelPatch:
    """An axis of size 1 is dropped where others have it or it is summed over, else it comes back behind the sum."""
    term = op.axes.inputs[slot]
    axis = getattr(change.op, "axis", 0)
    name = term[axis]
    axes = op.axes.with_input(slot, term[:axis] + term[axis + 1 :])
    if any(name in other for other in axes.inputs) or name not in axes.outputs[0]:
        return _rewired(model, node, op, axes, {slot: change.inputs[0]})
    place = axes.outputs[0].index(name)
    shorter = axes.with_output(0, axes.outputs[0].replace(name, ""))
    return _rewired(model, node, op, shorter, {slot: change.inputs[0]}, behind=AddAxis(place))


def _split_merged_axis(
    model: TypedModel, node: TypedNode, op: EinSum, slot: int, change: Node[TypedFact, Reshape]
) -> ModelPatch | None:
    """Where axes were merged into one: summed over as several, or merged behind the sum; constants are split alike."""
    merge = change.op
    if len(merge.after) != 1 or len(merge.before) < 2:
        return None
    name = op.axes.inputs[slot][merge.at]
    others = [other for other, term in enumerate(op.axes.inputs) if other != slot and name in term]
    if not all(_can_split(model, node.inputs[other], op.axes.inputs[other], name, merge) for other in others):
        return None
    names = "".join(_free_names(op.axes, len(merge.before)))
    axes = AxesMapping(
        tuple(term.replace(name, names) if s in (slot, *others) else term for s, term in enumerate(op.axes.inputs)),
        (op.axes.outputs[0].replace(name, names),),
    )
    undo = {other: Reshape(op.axes.inputs[other].index(name), merge.after, merge.before) for other in others}
    output = op.axes.outputs[0]
    behind = Reshape(output.index(name), merge.before, merge.after) if name in output else None
    return _rewired(model, node, op, axes, {slot: change.inputs[0]}, behind=behind, before=undo)


def _can_split(model: TypedModel, outlet: OutletId, term: str, name: str, merge: Reshape) -> bool:
    fact = model.outlet_fact(outlet)
    return is_known(model, outlet) and term.count(name) == 1 and fact.shape[term.index(name)] == product(merge.before)


def _free_names(axes: AxesMapping, count: int) -> list[str]:
    found: list[str] = []
    for _ in range(count):
        found.append(axes.free_name())
        axes = axes.with_output(0, axes.outputs[0] + found[-1])
    return found


def _rewired(
    model: TypedModel,
    node: TypedNode,
    op: EinSum,
    axes: AxesMapping,
    inputs: dict[int, OutletId],
    *,
    behind: AxisOp | None = None,
    before: dict[int, Reshape] | None = None,
) -> ModelPatch:
    """The sum over ``axes``, some inputs replaced, an axis operator behind it, and reshapes before some inputs."""
    patch = ModelPatch(model)
    taps = [patch.tap(inputs.get(slot, outlet)) for slot, outlet in enumerate(node.inputs)]
    for slot, reshape in (before or {}).items():
        taps[slot] = wire_one(patch.model, f"{node.name}.split{slot}", reshape, taps[slot])
    name = node.name if behind is None else f"{node.name}.einsum"
    result = wire_one(patch.model, name, replace(op, axes=axes), *taps)
    if behind is not None:
        result = wire_one(patch.model, node.name, behind, result)
    patch.shunt(OutletId(node.id), result)
    return patch


@rewrites(MoveAxis, RmAxis)
def axis_op_behind_einsum(model: TypedModel, node: TypedNode, op: MoveAxis | RmAxis) -> ModelPatch | None:
    """MoveAxis(EinSum(x, y)), RmAxis(EinSum(x, y)) -> EinSum(x, y) over other axes, when nothing else reads the sum"""
    summed = alone_by(model, node.inputs[0], EinSum)
    if summed is None or summed.op.q_output is not None:
        return None
    term = summed.op.axes.outputs[0]
    if isinstance(op, MoveAxis):
        moved = "".join(term[axis] for axis in op.permutation(len(term)))
    else:
        sizes = summed.op.sizes(model.input_facts(summed))
        if not is_one(sizes[term[op.axis]]):
            return None
        moved = term[: op.axis] + term[op.axis + 1 :]
    other = replace(summed.op, axes=summed.op.axes.with_output(0, moved))
    return ModelPatch.replace_op(model, node, other, summed.inputs)


@rewrites(EinSum)
def stretched_into_einsum(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(MultiBroadcastTo(x), y) -> EinSum(x, y), when y has every stretched axis in full"""
    if op.q_output is not None:
        return None
    for slot, outlet in enumerate(node.inputs):
        stretch = produced_by(model, outlet, MultiBroadcastTo)
        if stretch is None:
            continue
        term = op.axes.inputs[slot]
        narrow = model.outlet_fact(stretch.inputs[0])
        missing = len(term) - narrow.rank
        sizes = (1,) * missing + tuple(narrow.shape)
        wide = stretch.outputs[0].fact.shape
        lost = {name: large for name, small, large in zip(term, sizes, wide, strict=True) if small != large}
        lost.update(zip(term[:missing], wide[:missing], strict=True))
        others = [(o, t) for other, (o, t) in enumerate(zip(node.inputs, op.axes.inputs, strict=True)) if other != slot]
        if _repeats(term) or not all(_has(model, others, name, size) for name, size in lost.items()):
            continue
        return _rewired(model, node, op, op.axes.with_input(slot, term[missing:]), {slot: stretch.inputs[0]})
    return None


def _has(model: TypedModel, inputs: Sequence[tuple[OutletId, str]], name: str, size: Dim) -> bool:
    """Whether one of the inputs has that axis in full."""
    return any(name in term and model.outlet_fact(outlet).shape[term.index(name)] == size for outlet, term in inputs)


@rewrites(EinSum)
def einsum_of_one(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(x) that sums nothing -> x with its axes moved"""
    if len(node.inputs) != 1 or op.q_output is not None or _repeats(op.axes.inputs[0]):
        return None
    term, output = op.axes.inputs[0], op.axes.outputs[0]
    fact = model.outlet_fact(node.inputs[0])
    if fact.datum_type != node.outputs[0].fact.datum_type:
        return None
    gone = [axis for axis, name in enumerate(term) if name not in output]
    if not all(is_one(fact.shape[axis]) for axis in gone):
        return None
    kept = [name for name in term if name in output]
    row: Sequence[AxisOp] = [
        *(RmAxis(axis) for axis in reversed(gone)),
        *moves_for([kept.index(name) for name in output]),
    ]
    patch = ModelPatch(model)
    x = patch.tap(node.inputs[0])
    for count, change in enumerate(row):
        x = wire_one(patch.model, node.name if count == len(row) - 1 else f"{node.name}.{count}", change, x)
    patch.shunt(OutletId(node.id), x)
    return patch


@rewrites(EinSum)
def one_factor_of_two(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(x * a, y * b) with numbers a and b -> EinSum(x * (a * b), y), also where axes are moved or stretched then

    So are the queries and keys of attention scaled by PyTorch, each by a root: the keys of a long past are many.
    """
    if len(node.inputs) != 2 or op.q_output is not None or rounds_late(model.outlet_fact(node.inputs[0])):
        return None
    sides = [_scaled(model, outlet) for outlet in node.inputs]
    if sides[0] is None or sides[1] is None or node.inputs[0] == node.inputs[1]:
        return None
    patch = ModelPatch(model)
    left = sides[0].again(patch, f"{node.name}.left", sides[0].factor * sides[1].factor)
    right = sides[1].again(patch, f"{node.name}.right", None)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, op, left, right))
    return patch


@frozen
class _Scaled:
    """A tensor times a number. ``mul``: that node; ``slot``: of the tensor; ``behind``: nodes between it and a sum."""

    mul: TypedNode
    slot: int
    factor: float
    behind: tuple[TypedNode, ...]

    def again(self, patch: ModelPatch, name: str, factor: float | None) -> OutletId:
        """The same with another factor, or without one."""
        found = patch.tap(self.mul.inputs[self.slot])
        if factor is not None:
            like = self.mul.outputs[0].fact
            number = np.full((1,) * like.rank, factor, like.datum_type.numpy)
            found = wire_one(
                patch.model, f"{name}.scaled", Mul(), found, patch.model.add_const(f"{name}.factor", number)
            )
        for count, node in enumerate(self.behind):
            found = wire_one(patch.model, f"{name}.{count}", node.op, found)
        return found


def _scaled(model: TypedModel, outlet: OutletId) -> _Scaled | None:
    """Where a tensor is multiplied by a number and nothing else reads it, up to operators on axes and stretches."""
    behind: list[TypedNode] = []
    while (node := alone_by(model, outlet, AxisOp, MultiBroadcastTo)) is not None:
        behind.insert(0, node)
        outlet = node.inputs[0]
    mul = alone_by(model, outlet, Mul)
    found = None if mul is None else uniform_operand(model, mul)
    if mul is None or found is None or not isinstance(found[1], float):
        return None
    slot, factor = found
    same = model.outlet_fact(mul.inputs[slot]).shape == mul.outputs[0].fact.shape
    return _Scaled(mul, slot, factor, tuple(behind)) if same and np.isfinite(factor) else None


for rule in (axis_op_into_einsum, axis_op_behind_einsum, stretched_into_einsum, einsum_of_one, one_factor_of_two):
    ROWS.add(DECLUTTER, rule.name, rule)
