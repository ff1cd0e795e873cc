"""Rules for convolutions: what stands around them moves into kernel, bias, padding or strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tract_core.dims import Dim, is_one, is_symbolic
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.fact import TypedFact
from tract_core.model.graph import Node, OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, Binary, Div, Mul, Sub
from tract_core.ops.conv import Conv
from tract_core.ops.deconv import Deconv
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool_spec import Explicit, PoolSpec, Valid
from tract_core.ops.wiring import wire_one, wire_squeeze, wire_unsqueeze
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.jumps import feeds_jump
from tract_core.rules.pattern import alone_by, is_known, produced_by, read_by, uniform

ROWS = Rows()

ConvNode = Node[TypedFact, Conv]

_SHIFTS: Final = (Add, Sub)
_FACTORS: Final = (Mul, Div)
_MEANING: Final[dict[type, np.ufunc]] = {Add: np.add, Sub: np.subtract, Mul: np.multiply, Div: np.divide}


@rewrites(*_SHIFTS, *_FACTORS)
def channelwise_into_conv(model: TypedModel, node: TypedNode, op: Binary) -> ModelPatch | None:
    """Conv(x, k, b) + c, - c, * c or / c, with one number c per channel -> Conv(x, k * c, b * c), or with b + c

    For floats of f32 or wider. With ``u`` half a unit in the last place, the new kernel and bias are off by ``u`` times
    the largest element of their channel at most, so the result by ``u * max|k * c| * sum|x| + u * |b * c|``: that is
    what a sum of so many products may be off by anyway, as long as it does not overflow. Where that could be seen,
    because something behind it jumps, the operators stay apart.
    """
    conv = _conv_before(model, node)
    if conv is None:
        return None
    kernel = model.outlet_fact(conv.inputs[1])
    channels = node.outputs[0].fact.shape[_c_axis(conv)]
    patch = ModelPatch(model)
    number = _per_channel(patch, node, _c_axis(conv))
    x, weights, bias = (patch.tap(outlet) for outlet in conv.inputs)
    bias = _in_full(patch, node, bias, number)
    if isinstance(op, _FACTORS):
        bias = wire_one(patch.model, f"{node.name}.bias", op, bias, number)
        o_axis = conv.op.kernel_format.o_axis(kernel.rank)
        spread = wire_unsqueeze(
            patch.model, f"{node.name}.spread", number, [axis for axis in range(kernel.rank) if axis != o_axis]
        )
        weights = wire_one(patch.model, f"{node.name}.kernel", op, weights, spread)
    else:
        bias = wire_one(patch.model, f"{node.name}.bias", op, bias, number)
    if patch.fact(bias).shape[0] not in (1, channels):
        return None
    if is_one(patch.fact(bias).shape[0]) and not is_one(channels):
        bias = wire_squeeze(patch.model, f"{node.name}.scalar", bias, [0])
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, conv.op, x, weights, bias))
    return patch


def _conv_before(model: TypedModel, node: TypedNode) -> ConvNode | None:
    """The convolution of constants whose result ``node`` alone combines with one number per channel."""
    conv = alone_by(model, node.inputs[0], Conv)
    if conv is None or conv.op.q_output is not None:
        return None
    fact = node.outputs[0].fact
    if not all(is_known(model, outlet) for outlet in (*conv.inputs[1:3], node.inputs[1])):
        return None
    if not fact.datum_type.is_float() and not isinstance(node.op, _SHIFTS):
        return None
    operand = model.outlet_fact(node.inputs[1]).shape
    if conv.outputs[0].fact.shape != fact.shape:
        return None
    c_axis = _c_axis(conv)
    if not all(is_one(size) for axis, size in enumerate(operand) if axis != c_axis):
        return None
    return conv if not fact.datum_type.is_float() or _unseen(model, node, conv) else None


def _unseen(model: TypedModel, node: TypedNode, conv: ConvNode) -> bool:
    """Whether taking the numbers of ``node`` into kernel and bias of floats changes last digits only, and unseen."""
    constants = [model.constant(outlet) for outlet in (*conv.inputs[1:3], node.inputs[1])]
    known = [one for one in constants if one is not None and one.dtype.itemsize >= 4]
    if len(known) < len(constants) or feeds_jump(model, OutletId(node.id)):
        return False
    kernel, bias, number = known[0], *(np.asarray(one, np.float64) for one in known[1:])
    kind = np.finfo(conv.outputs[0].fact.datum_type.numpy)
    if isinstance(node.op, _SHIFTS):
        return bool(np.all(np.abs(_MEANING[type(node.op)](bias.reshape(-1), number.reshape(-1))) <= kind.max))
    per_channel = tuple(axis for axis in range(kernel.ndim) if axis != conv.op.kernel_format.o_axis(kernel.ndim))
    factor = _MEANING[type(node.op)](1.0, np.abs(number.reshape(-1)))
    # by both ends: the absolute values of a large kernel would be a copy of it
    ends = [kernel.max(axis=per_channel, initial=0), -kernel.min(axis=per_channel, initial=0)]
    largest, bias = np.maximum(*ends).astype(np.float64) * factor, np.abs(bias.reshape(-1)) * factor
    in_full = (largest == 0) | ((largest >= kind.smallest_normal) & (largest <= kind.max))
    return bool(np.all(in_full) and np.all(bias <= kind.max))


def _c_axis(conv: ConvNode) -> int:
    return conv.op.pool.data_format.c_axis(conv.outputs[0].fact.rank)


def _per_channel(patch: ModelPatch, node: TypedNode, c_axis: int) -> OutletId:
    """The second operand, of rank 1."""
    rank = node.outputs[0].fact.rank
    others = [axis for axis in range(rank) if axis != c_axis]
    return wire_squeeze(patch.model, f"{node.name}.flat", patch.tap(node.inputs[1]), others)


def _in_full(patch: ModelPatch, node: TypedNode, bias: OutletId, number: OutletId) -> OutletId:
    """The bias, of rank 1."""
    if patch.fact(bias).rank == 1:
        return bias
    return wire_one(patch.model, f"{node.name}.bias1", AddAxis(0), bias)


@rewrites(Conv)
def pad_into_conv(model: TypedModel, node: TypedNode, op: Conv) -> ModelPatch | None:
    """Conv(Pad(x)), zeros on spatial axes -> Conv(x) with more padding"""
    pad = produced_by(model, node.inputs[0], Pad)
    before = _explicit(op.pool)
    if pad is None or before is None or op.q_output is not None:
        return None
    mode = pad.op.mode
    if not isinstance(mode, PadConstant) or mode.value.array.item() != 0:
        return None
    layout = op.pool.data_format
    spatial = range(layout.h_axis, layout.h_axis + op.pool.rank)
    if any(pair != (0, 0) for axis, pair in enumerate(pad.op.pads) if axis not in spatial):
        return None
    added = [pad.op.pads[axis] for axis in spatial]
    padding = Explicit(
        tuple(old + new for old, (new, _) in zip(before.before, added, strict=True)),
        tuple(old + new for old, (_, new) in zip(before.after, added, strict=True)),
    )
    return ModelPatch.replace_op(
        model, node, replace(op, pool=replace(op.pool, padding=padding)), [pad.inputs[0], *node.inputs[1:]]
    )


def _explicit(pool: PoolSpec) -> Explicit | None:
    """The padding as numbers; ``None`` where it depends on the sizes."""
    if isinstance(pool.padding, Valid):
        return Explicit((0,) * pool.rank, (0,) * pool.rank)
    return pool.padding if isinstance(pool.padding, Explicit) else None


@rewrites(Conv)
def stride_before_conv(model: TypedModel, node: TypedNode, op: Conv) -> ModelPatch | None:
    """Conv whose kernel only reads every n-th element, stride n -> Conv(Downsample(x)), stride 1"""
    shape = model.outlet_fact(node.inputs[0]).shape
    if all(stride == 1 for stride in op.pool.strides):
        return None
    for axis, plan in enumerate(op.pool.plan(op, shape)):
        stride, dilation = plan.window.stride, plan.window.dilation
        aligned = plan.window.kernel == 1 or dilation % stride == 0
        if stride == 1 or not aligned or plan.before != 0 or plan.after != 0 or _explicit(op.pool) is None:
            continue
        dilations = _with(op.pool.dilations, axis, max(1, dilation // stride))
        pool = replace(op.pool, strides=_with(op.pool.strides, axis, 1), dilations=dilations)
        patch = ModelPatch(model)
        taps = [patch.tap(outlet) for outlet in node.inputs]
        thin = Downsample(op.pool.data_format.h_axis + axis, stride)
        taps[0] = wire_one(patch.model, f"{node.name}.downsample", thin, taps[0])
        patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, replace(op, pool=pool), *taps))
        return patch
    return None


def _with(values: Sequence[int], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


@rewrites(Downsample)
def downsample_into_conv(model: TypedModel, node: TypedNode, op: Downsample) -> ModelPatch | None:
    """Downsample(Conv(x)) on a spatial axis -> Conv(x) with a larger stride, when nothing else reads the convolution"""
    conv = alone_by(model, node.inputs[0], Conv)
    if conv is None or op.stride < 2 or op.modulo != 0:
        return None
    pool = conv.op.pool
    axis = op.axis - pool.data_format.h_axis
    if not 0 <= axis < pool.rank or _explicit(pool) is None:
        return None
    strides = _with(pool.strides, axis, pool.strides[axis] * op.stride)
    return ModelPatch.replace_op(model, node, replace(conv.op, pool=replace(pool, strides=strides)), conv.inputs)


@rewrites(Conv)
def pointwise_conv(model: TypedModel, node: TypedNode, op: Conv) -> ModelPatch | None:
    """Conv whose kernel is a single element, without groups, padding or strides -> EinSum(x, k) + b"""
    if op.group != 1 or op.q_output is not None or any(size != 1 for size in op.pool.kernel_shape):
        return None
    fact = model.outlet_fact(node.inputs[0])
    if not all(plan.is_trivial for plan in op.pool.plan(op, fact.shape)) or _will_be_folded(model, node):
        return None
    rank, kernel = fact.rank, model.outlet_fact(node.inputs[1])
    c_axis = op.pool.data_format.c_axis(rank)
    names = iter(letters())
    term = "".join(next(names) for _ in range(rank))
    output = next(names)
    layout = op.kernel_format
    matrix = output + term[c_axis] if layout.o_axis(kernel.rank) < layout.i_axis(kernel.rank) else term[c_axis] + output
    axes = AxesMapping((term, matrix), (term[:c_axis] + output + term[c_axis + 1 :],))
    patch = ModelPatch(model)
    x, weights, bias = (patch.tap(outlet) for outlet in node.inputs)
    spatial = range(layout.h_axis, layout.h_axis + op.pool.rank)
    weights = wire_squeeze(patch.model, f"{node.name}.kernel", weights, spatial)
    plain = uniform(model, node.inputs[2]) == 0
    acc = accumulator(node.outputs[0].fact.datum_type)
    result = wire_one(patch.model, node.name if plain else f"{node.name}.einsum", EinSum(axes, acc), x, weights)
    if not plain:
        result = wire_one(patch.model, node.name, Add(), result, _spread(patch, node, bias, rank, c_axis))
    patch.shunt(OutletId(node.id), result)
    return patch


def _will_be_folded(model: TypedModel, node: TypedNode) -> bool:
    """Whether what reads the convolution goes into its kernel first."""
    reader = read_by(model, OutletId(node.id), *_SHIFTS, *_FACTORS)
    if reader is None or reader.inputs[0].node != node.id:
        return False
    return _conv_before(model, reader) is not None


def _spread(patch: ModelPatch, node: TypedNode, bias: OutletId, rank: int, c_axis: int) -> OutletId:
    """The bias with an axis for each one of the output."""
    own = range(rank) if patch.fact(bias).rank == 0 else [axis for axis in range(rank) if axis != c_axis]
    return wire_unsqueeze(patch.model, f"{node.name}.bias", bias, own)


@rewrites(Conv)
def drop_single_axis(model: TypedModel, node: TypedNode, op: Conv) -> ModelPatch | None:
    """Conv(AddAxis(x)), the new axis being spatial and passing through -> AddAxis(Conv(x)) with one axis less"""
    change = alone_by(model, node.inputs[0], AddAxis)
    padding = _explicit(op.pool)
    if change is None or padding is None or op.pool.rank < 2:
        return None
    layout = op.pool.data_format
    axis = change.op.axis - layout.h_axis
    if not 0 <= axis < op.pool.rank:
        return None
    if not op.pool.plan(op, model.outlet_fact(node.inputs[0]).shape)[axis].is_trivial:
        return None
    pool = replace(
        op.pool,
        kernel_shape=_less(op.pool.kernel_shape, axis),
        strides=_less(op.pool.strides, axis),
        dilations=_less(op.pool.dilations, axis),
        padding=Explicit(_less_dims(padding.before, axis), _less_dims(padding.after, axis)),
    )
    patch = ModelPatch(model)
    taps = [patch.tap(outlet) for outlet in [change.inputs[0], *node.inputs[1:]]]
    squeeze = RmAxis(op.kernel_format.h_axis + axis)
    taps[1] = wire_one(patch.model, f"{node.name}.kernel", squeeze, taps[1])
    inner = wire_one(patch.model, f"{node.name}.conv", replace(op, pool=pool), *taps)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, change.op, inner))
    return patch


@rewrites(Deconv)
def less_is_cut(model: TypedModel, node: TypedNode, op: Deconv) -> ModelPatch | None:
    """Deconv that adds elements at an end where it also cuts some -> one that cuts less"""
    padding = op.pool.padding
    if not isinstance(padding, Explicit):
        return None
    ends = list(zip(padding.after, op.adjustments, strict=True))
    both = [0 if is_symbolic(cut) else min(max(int(cut), 0), added) for cut, added in ends]
    if not any(both):
        return None
    after = tuple(cut - less for (cut, _), less in zip(ends, both, strict=True))
    adjustments = tuple(added - less for (_, added), less in zip(ends, both, strict=True))
    pool = replace(op.pool, padding=Explicit(padding.before, after))
    return ModelPatch.replace_op(model, node, replace(op, pool=pool, adjustments=adjustments))


def _less(values: Sequence[int], place: int) -> tuple[int, ...]:
    return (*values[:place], *values[place + 1 :])


def _less_dims(values: Sequence[Dim], place: int) -> tuple[Dim, ...]:
    return (*values[:place], *values[place + 1 :])


for rule in (
    channelwise_into_conv,
    pad_into_conv,
    stride_before_conv,
    downsample_into_conv,
    drop_single_axis,
    pointwise_conv,
    less_is_cut,
):
    ROWS.add(DECLUTTER, rule.name, rule)
