"""Rules for axes of which only every n-th element is kept: the sooner, the less is computed."""

from __future__ import annotations

from tract_core.dims import ceil_div, is_symbolic
from tract_core.errors import TractError
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.downsample import Downsample
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by
from tract_core.rules.push_slice_up import carriers, cut_inputs

ROWS = Rows()


@rewrites(Downsample)
def remove_downsample(model: TypedModel, node: TypedNode, op: Downsample) -> ModelPatch | None:
    """Downsample(x) that keeps every element in order -> x"""
    return ModelPatch.shunt_one(model, node) if op.stride == 1 and op.modulo == 0 else None


@rewrites(Downsample)
def merge_downsamples(model: TypedModel, node: TypedNode, op: Downsample) -> ModelPatch | None:
    """Downsample(Downsample(x)) forwards on one axis -> Downsample(x), where that surely begins inside of x"""
    first = alone_by(model, node.inputs[0], Downsample)
    if first is None or first.op.axis != op.axis:
        return None
    if first.op.stride < 0 or op.stride < 0:
        return None
    merged = Downsample(op.axis, first.op.stride * op.stride, first.op.modulo + op.modulo * first.op.stride)
    size = model.outlet_fact(first.inputs[0]).shape[op.axis]
    if op.modulo and first.op.stride > 1 and model.known.less_or_equal(merged.modulo, size) is not True:
        return None  # x[::2][2:] of three elements is empty, x[4::2] is refused
    return ModelPatch.replace_op(model, node, merged, first.inputs)


@rewrites(Downsample)
def downsample_before_slice(model: TypedModel, node: TypedNode, op: Downsample) -> ModelPatch | None:
    """Downsample(Slice(x)) forwards on one axis -> Slice(Downsample(x)), when nothing else reads the slice"""
    part = alone_by(model, node.inputs[0], Slice)
    if part is None or part.op.axis != op.axis or op.stride < 2:
        return None
    start, end = part.op.start, part.op.end
    if is_symbolic(start) or model.known.less_or_equal(start + op.modulo, end) is not True:
        return None
    first, modulo = divmod(int(start) + op.modulo, op.stride)
    kept = ceil_div(end - int(start) - op.modulo, op.stride)
    patch = ModelPatch(model)
    thin = Downsample(op.axis, op.stride, modulo)
    inner = wire_one(patch.model, f"{node.name}.downsample", thin, patch.tap(part.inputs[0]))
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, Slice(op.axis, first, first + kept), inner))
    return patch


@rewrites(Downsample)
def pull_downsample_up(model: TypedModel, node: TypedNode, op: Downsample) -> ModelPatch | None:
    """Downsample(f(x)) -> f(Downsample(x)), when nothing else reads what f computes and the axis passes through f"""
    producer = alone_by(model, node.inputs[0], TypedOp)
    if producer is None or isinstance(producer.op, (TypedSource, Const, Slice)) or len(producer.outputs) != 1:
        return None
    if isinstance(producer.op, Downsample) and producer.op.axis <= op.axis:
        return None
    found = carriers(model, producer, op.axis)
    if found is None:
        return None
    patch = ModelPatch(model)
    taps = cut_inputs(patch, node.name, found, lambda axis: Downsample(axis, op.stride, op.modulo))
    try:
        result = wire_one(patch.model, node.name, producer.op, *taps)
    except TractError:
        return None  # the operator holds the size of the axis itself
    if patch.fact(result).shape != node.outputs[0].fact.shape:
        return None
    patch.shunt(OutletId(node.id), result)
    return patch


for rule in (remove_downsample, merge_downsamples, downsample_before_slice, pull_downsample_up):
    ROWS.add(DECLUTTER, rule.name, rule)
