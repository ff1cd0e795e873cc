"""Move slices towards the inputs, so that less is computed. The axes mappings say through which operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tract_core.errors import FactError, TractError
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.questions import node_axes
from tract_core.model.rewriter import rewrites
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.conv import Convolution
from tract_core.ops.pool_spec import PoolSpec
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER, STATE
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import MOST_READERS

ROWS = Rows()


@rewrites(Slice)
def push_slice_up(model: TypedModel, node: TypedNode, op: Slice) -> ModelPatch | None:
    """Slice(f(x)) -> f(Slice(x)), when only slices that do not overlap, on one axis, read what f computes"""
    source = node.inputs[0]
    producer = model.nodes[source.node]
    if isinstance(producer.op, (TypedSource, Const)) or len(producer.outputs) != 1 or not producer.op.pure:
        return None
    if isinstance(producer.op, Slice) and producer.op.axis <= op.axis:
        return None  # slices of several axes stand in one order
    slices = _slices(model, source, op.axis)
    if slices is None or slices[0].id != node.id:
        return None
    inputs = carriers(model, producer, op.axis)
    if inputs is None:
        return None
    patch = ModelPatch(model)
    try:
        for one in slices:
            patch.shunt(OutletId(one.id), _sliced(model, patch, producer, one, inputs))
    except TractError:
        return None  # the operator holds the size of the axis itself
    return patch


def _slices(model: TypedModel, source: OutletId, axis: int) -> list[TypedNode] | None:
    """The readers of an outlet, by where they begin, when they are slices that do not overlap; ``None`` otherwise."""
    if len(model.outlet(source).successors) > MOST_READERS or source in model.outputs:
        return None
    readers = [model.nodes[inlet.node] for inlet in model.outlet(source).successors]
    if len(readers) == 1:
        return readers
    ranges: list[tuple[int, int, TypedNode]] = []
    for reader in readers:
        op: Any = reader.op
        if not isinstance(op, Slice) or op.axis != axis or not isinstance(op.start, int) or not isinstance(op.end, int):
            return None
        ranges.append((op.start, op.end, reader))
    ranges.sort(key=lambda one: one[:2])
    if any(left[1] > right[0] for left, right in pairwise(ranges)):
        return None
    return [reader for _, _, reader in ranges]


@frozen
class Carrier:
    """An input of an operator, and the place of the sliced axis in it; ``None`` when it does not have it."""

    outlet: OutletId
    axis: int | None


def carriers(model: TypedModel, producer: TypedNode, axis: int) -> list[Carrier] | None:
    """Where the axis is in each input; ``None`` when it does not pass through, or is not in any of them."""
    if not producer.inputs or model.registry[STATE].find(type(producer.op)) is not None:
        return None
    mapping = node_axes(model, producer)
    if mapping is None:
        return None
    name = mapping.outputs[0][axis]
    size = producer.outputs[0].fact.shape[axis]
    if mapping.outputs[0].count(name) != 1:
        return None
    found: list[Carrier] = []
    for outlet, term in zip(producer.inputs, mapping.inputs, strict=True):
        if term.count(name) > 1:
            return None
        place = term.index(name) if name in term else None
        if place is not None and model.outlet_fact(outlet).shape[place] != size:
            return None
        found.append(Carrier(outlet, place))
    return found if any(carrier.axis is not None for carrier in found) else None


def cut_inputs(
    patch: ModelPatch, name: str, inputs: Sequence[Carrier], cut: Callable[[int], TypedOp]
) -> list[OutletId]:
    """The inputs in a patch, those that have the axis cut by ``cut`` of its place; ``name``: of the node they go to."""
    taps: list[OutletId] = []
    for slot, carrier in enumerate(inputs):
        outlet = patch.tap(carrier.outlet)
        if carrier.axis is not None:
            outlet = wire_one(patch.model, f"{name}.input{slot}", cut(carrier.axis), outlet)
        taps.append(outlet)
    return taps


def _sliced(
    model: TypedModel, patch: ModelPatch, producer: TypedNode, node: TypedNode, inputs: Sequence[Carrier]
) -> OutletId:
    part: Any = node.op
    taps = cut_inputs(patch, node.name, inputs, lambda axis: Slice(axis, part.start, part.end))
    result = wire_one(patch.model, node.name, _narrowed(producer, part), *taps)
    if patch.fact(result).shape != node.outputs[0].fact.shape:
        raise FactError(f"{producer.op.name} holds the size of the sliced axis")
    return result


def _narrowed(producer: TypedNode, part: Slice) -> TypedOp:
    """The operator for fewer output channels, where it says how many there are."""
    op = producer.op
    if not isinstance(op, Convolution) or op.pool.output_channels is None:
        return op
    if part.axis != op.pool.data_format.c_axis(producer.outputs[0].fact.rank):
        return op
    pool = replace(op.pool, output_channels=part.end - part.start)
    return _with_pool(op, pool)


def _with_pool(op: Any, pool: PoolSpec) -> TypedOp:
    return replace(op, pool=pool)


ROWS.add(DECLUTTER, push_slice_up.name, push_slice_up)
