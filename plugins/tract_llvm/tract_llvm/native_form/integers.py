"""Products and convolutions of quantised tensors, on the integers that are stored.

A model says such a product in many ways: of numbers that are dequantised before, with the quantisation behind, or by an
operator that does all at once. Here they become one: a product of narrow integers, of which the weights are distances
from their zero point; what the zero point of the data amounts to is added to the sums, which are exact in i32. What
comes behind is element by element, so that kernels do it before anything is written.

Where a model sums dequantised numbers in f32, this is more exact than the model: results differ from the reference by
what that rounds, which where they are quantised again may be one step, if the number lies half way between two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import is_one, less_or_equal
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, AxisOp, RmAxis
from tract_core.ops.binary import Add, Binary, Mul, Sub
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import QUANTIZED_INPUTS, EinSum
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import Explicit
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one, wire_squeeze, wire_unsqueeze
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, produced_by
from tract_llvm.llvm_only.on_steps import Requantize, SumOfSteps
from tract_llvm.native_form.steps import NARROW, distances, known, narrowed, number, steps_of, weights_of
from tract_llvm.native_form.table import RULES

ROWS = Rows()

_LARGEST: Final = 2**31 - 1
"""The largest sum that an i32 holds."""

_FAR: Final = 2.0**100
"""Products of bytes with smaller numbers are finite."""

_DATA: Final = 255
"""No element of narrow data is larger."""


@rewrites(Conv)
def conv_of_integers(model: TypedModel, node: TypedNode, op: Conv) -> ModelPatch | None:
    """Conv(dequantised x, dequantised known weights) + bias -> Conv of integers * scale + bias"""
    if op.q_output is not None:
        return None
    data, weights = steps_of(model, node.inputs[0]), weights_of(model, node.inputs[1])
    bias = known(model, node.inputs[2])
    outputs = op.kernel_format.o_axis(op.pool.rank + 2)
    if data is None or weights is None or bias is None or not weights.varies_at_most_along((outputs,)):
        return None
    patch = ModelPatch(model)
    nothing = np.zeros((), np.int64)
    sums = _conv(patch, node.name, op, (patch.tap(data.integers), data.zero), (weights.integers, nothing))
    if sums is None:
        return None
    factor = (weights.scale_along((outputs,)).astype(np.float64) * data.scale).astype(np.float32)
    along = _along_channels(model, node, op)
    result = _as_numbers(patch, node.name, sums, factor.reshape(along))
    if bias.any():
        shift = patch.model.add_const(f"{node.name}.bias", _spread(bias, along))
        result = wire_one(patch.model, f"{node.name}.biased", Add(), result, shift)
    patch.shunt(OutletId(node.id), result)
    return patch


@rewrites(Conv)
def quantized_conv(model: TypedModel, node: TypedNode, op: Conv) -> ModelPatch | None:
    """Conv(q_output) whose parameters are known -> Requantize(Conv of integers)"""
    to = op.q_output
    if to is None or to not in NARROW or model.outlet_fact(node.inputs[0]).datum_type not in NARROW:
        return None
    zero = number(model, node.inputs[3])
    arrays = [known(model, node.inputs[slot]) for slot in (1, 2, 4, 5, 6, 7, 8)]
    found = [one for one in arrays if one is not None]
    if zero is None or len(found) < len(arrays):
        return None
    kernel, bias, x_scale, kernel_zero, kernel_scale, y_zero, y_scale = found
    place = op.kernel_format.o_axis(kernel.ndim)
    by_channel = [-1 if axis == place else 1 for axis in range(kernel.ndim)]
    centred = distances(kernel, kernel_zero.reshape(by_channel) if kernel_zero.ndim else kernel_zero)
    patch, along = ModelPatch(model), _along_channels(model, node, op)
    plain = replace(op, q_output=None)
    data = (patch.tap(node.inputs[0]), int(zero))
    sums = _conv(patch, node.name, plain, data, (centred, bias.astype(np.int64)))
    factor = _spread(x_scale * kernel_scale / y_scale, along).astype(np.float64)
    if sums is None or not np.isfinite(factor).all():
        return None
    steps = y_zero.astype(to.storage.numpy)
    parameters = (factor, _spread(np.zeros((), factor.dtype), along), _spread(steps, along))
    patch.shunt(OutletId(node.id), _requantized(patch, node.name, sums, parameters))
    return patch


def _conv(
    patch: ModelPatch, name: str, op: Conv, data: tuple[OutletId, int], weights: tuple[Array, Array]
) -> OutletId | None:
    """The sums, in i32. ``data``: with its zero point; ``weights``: as distances from theirs, with a bias in integers.

    ``None`` where they may not fit, or where it is not known how far windows reach beyond the data.
    """
    (x, zero), (centred, bias) = data, weights
    others = tuple(axis for axis in range(centred.ndim) if axis != op.kernel_format.o_axis(centred.ndim))
    start = bias - zero * centred.sum(axis=others, dtype=np.int64)
    if not _fits(start, centred, lambda sizes: sizes.sum(axis=others)):
        return None
    if zero and any(plan.before != 0 or plan.after != 0 for plan in op.pool.plan(op, patch.fact(x).shape)):
        bordered = _bordered(patch, f"{name}.bordered", op, x, zero)
        if bordered is None:
            return None
        op, x = bordered
    kernel = patch.model.add_const(f"{name}.integers", narrowed(centred))
    shift = start.astype(np.int32) if start.any() else np.zeros((), np.int32)
    return wire_one(patch.model, f"{name}.sums", op, x, kernel, patch.model.add_const(f"{name}.start", shift))


def _bordered(patch: ModelPatch, name: str, op: Conv, x: OutletId, zero: int) -> tuple[Conv, OutletId] | None:
    """The convolution without padding, and the data with zero points around, if it is known how many."""
    padding = op.pool.padding
    if not isinstance(padding, Explicit):
        return None
    spatial, fact, first = (
        list(zip(padding.before, padding.after, strict=True)),
        patch.fact(x),
        op.pool.data_format.h_axis,
    )
    ends = [spatial[axis - first] if first <= axis < first + len(spatial) else (0, 0) for axis in range(fact.rank)]
    pad = Pad(tuple(ends), PadConstant(Constant(np.array(zero, fact.datum_type.storage.numpy))))
    none = (0,) * len(spatial)
    plain = replace(op, pool=replace(op.pool, padding=Explicit(none, none)))
    return plain, wire_one(patch.model, name, pad, x)


def _along_channels(model: TypedModel, node: TypedNode, op: Conv) -> list[int]:
    """The shape of what there is for every channel of the output."""
    rank = model.outlet_fact(OutletId(node.id)).rank
    return [-1 if axis == op.pool.data_format.c_axis(rank) else 1 for axis in range(rank)]


def _spread(array: Array, along: Sequence[int]) -> Array:
    """One number, or one for each channel, in the axes of the output."""
    return array.reshape(along if array.size > 1 else [1] * len(along))


@rewrites(AxisOp, Downsample, MaxPool, MultiBroadcastTo, Slice)
def moved_integers(model: TypedModel, node: TypedNode, op: TypedOp) -> ModelPatch | None:
    """Downsample(DequantizeLinear(x)) -> DequantizeLinear(Downsample(x)), and so for what else moves elements alone"""
    steps, before = steps_of(model, node.inputs[0]), produced_by(model, node.inputs[0], DequantizeLinear)
    if before is None or steps is None or len(node.inputs) != 1:
        return None
    if isinstance(op, MaxPool) and (op.indices is not None or steps.scale <= 0 or not _sees_elements(model, node, op)):
        return None
    patch = ModelPatch(model)
    x, *parameters = map(patch.tap, before.inputs)
    moved = wire_one(patch.model, f"{node.name}.integers", op, x)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, before.op, moved, *parameters))
    return patch


def _sees_elements(model: TypedModel, node: TypedNode, op: MaxPool) -> bool:
    """Whether no window can hold padding alone, whose largest element is another one for every type."""
    plans = op.pool.plan(op, model.outlet_fact(node.inputs[0]).shape)
    ends = [(plan.window, end) for plan in plans for end in (plan.before, plan.overhang)]
    return all(window.dilation == 1 and less_or_equal(end, window.kernel - 1) is True for window, end in ends)


@rewrites(QuantizeLinear)
def there_and_back(model: TypedModel, node: TypedNode, op: QuantizeLinear) -> ModelPatch | None:
    """QuantizeLinear(DequantizeLinear(x)) by the same scale and zero point -> x"""
    before = produced_by(model, node.inputs[0], DequantizeLinear)
    if before is None or model.outlet_fact(before.inputs[0]).datum_type != op.to or op.to not in NARROW:
        return None
    steps, scale, zero = steps_of(model, node.inputs[0]), *(number(model, one) for one in node.inputs[1:])
    if steps is None or scale is None or zero is None or not 2.0**-100 < scale < 2.0**100:
        return None  # as products of so small numbers are not exact enough, and of larger ones none at all
    same = steps.scale == float(scale) and steps.zero == int(zero)
    return ModelPatch.shunt_one(model, node, before.inputs[0]) if same else None


@rewrites(EinSum)
def product_of_integers(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(dequantised x, dequantised known weights) -> EinSum of integers * scale"""
    if op.q_output is not None or op.acc is not DatumType.F32 or len(node.inputs) != 2:
        return None
    for slot in (0, 1):
        data, weights = steps_of(model, node.inputs[slot]), weights_of(model, node.inputs[1 - slot])
        if data is None or weights is None or not _has_all_summed(model, node, op, slot):
            continue
        term, output = op.axes.inputs[1 - slot], op.axes.outputs[0]
        kept = tuple(axis for axis, name in enumerate(term) if name in output)
        start = -data.zero * _of_weights(weights.integers, term, output)
        fits = _fits(start, weights.integers, partial(_of_weights, term=term, output=output))
        if not fits or not weights.varies_at_most_along(kept):
            continue
        patch = ModelPatch(model)
        sums = _started(patch, node.name, _product(patch, node, slot, data.integers, weights.integers), start)
        factor = (weights.scale_along(kept).astype(np.float64) * data.scale).astype(np.float32)
        names = "".join(term[axis] for axis in kept)
        patch.shunt(OutletId(node.id), _as_numbers(patch, node.name, sums, _placed(factor, names, output)))
        return patch
    return None


@rewrites(EinSum)
def quantized_product(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(q_output) whose parameters and one factor are known -> Requantize(EinSum of integers)"""
    if op.q_output not in NARROW or set(op.axes.outputs[0]) - set("".join(op.axes.inputs[:2])):
        return None
    found = (_product_in_steps(model, node, op, slot) for slot in (0, 1) if _has_all_summed(model, node, op, slot))
    return next((patch for patch in found if patch is not None), None)


_ALONG: Final = ("bias", "c0", "a_scale", "b_scale", "c_scale")
"""Parameters of a product that vary along axes of its output."""


def _product_in_steps(model: TypedModel, node: TypedNode, op: EinSum, slot: int) -> ModelPatch | None:
    """The same where the factor ``slot`` is the data, and the other one is known."""
    name, (output,) = node.name, op.axes.outputs
    terms: dict[str, str] = dict(zip(QUANTIZED_INPUTS, op.axes.inputs, strict=True))
    data, of_data, other = QUANTIZED_INPUTS[slot], f"{QUANTIZED_INPUTS[slot]}0", QUANTIZED_INPUTS[1 - slot]
    arrays = dict[str, Array]()
    for one, outlet in zip(QUANTIZED_INPUTS, node.inputs, strict=True):
        array = None if one == data else known(model, outlet)
        if array is not None:
            arrays[one] = array
    if len(arrays) < len(terms) - 1 or arrays[of_data].ndim or not np.issubdtype(arrays["bias"].dtype, np.integer):
        return None
    bias, steps, *scales = (_placed(arrays[one], terms[one], output) for one in _ALONG)
    first, second, third = (one.astype(np.float64) for one in scales)
    factor, of_other = first * second / third, partial(_of_weights, term=terms[other], output=output)
    centred = distances(arrays[other], _placed(arrays[f"{other}0"], terms[f"{other}0"], terms[other]))
    start = bias.astype(np.int64) - int(arrays[of_data]) * of_other(centred)
    narrow = model.outlet_fact(node.inputs[slot]).datum_type in NARROW
    if not narrow or not np.isfinite(factor).all() or not _fits(start, centred, of_other):
        return None
    patch, to = ModelPatch(model), model.outlet_fact(OutletId(node.id)).datum_type.storage
    sums = _started(patch, name, _product(patch, node, slot, node.inputs[slot], centred), start)
    parameters = (factor, np.zeros([1] * len(output)), steps.astype(to.numpy))
    patch.shunt(OutletId(node.id), _requantized(patch, name, sums, parameters))
    return patch


@rewrites(EinSum)
def zero_point_behind_product(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(narrow x - one zero point, known weights) in i32 -> EinSum(x, weights) - zero point * sums of weights"""
    if op.q_output is not None or op.acc is not DatumType.I32 or len(node.inputs) != 2:
        return None
    for slot in (0, 1):
        weights, distance = known(model, node.inputs[1 - slot]), _distance(model, node.inputs[slot])
        if weights is None or not weights.size or distance is None or not _has_all_summed(model, node, op, slot):
            continue
        narrow, zero = distance
        patch = ModelPatch(model)
        sums = _product(patch, node, slot, narrow, weights)
        of_weights = _of_weights(weights, op.axes.inputs[1 - slot], op.axes.outputs[0])
        whole = patch.model.add_const(f"{node.name}.weights", of_weights.astype(np.int32))
        point = _number(patch, f"{node.name}.point", zero, of_weights.ndim)
        less = wire_one(patch.model, f"{node.name}.less", Mul(), point, whole)
        patch.shunt(OutletId(node.id), wire_one(patch.model, f"{node.name}.centred", Sub(), sums, less))
        return patch
    return None


def _distance(model: TypedModel, outlet: OutletId) -> tuple[OutletId, OutletId] | None:
    """Small integers and the one zero point from which a tensor is their distance, if it is that, in 32 bits."""
    far = produced_by(model, outlet, Sub)
    wide = produced_by(model, far.inputs[0], Cast) if far is not None else None
    if far is None or wide is None or not all(map(is_one, model.outlet_fact(far.inputs[1]).shape)):
        return None
    narrow, found = model.outlet_fact(wide.inputs[0]), model.outlet_fact(outlet)
    fits = narrow.datum_type in NARROW and narrow.shape == found.shape and found.datum_type is DatumType.I32
    return (wide.inputs[0], far.inputs[1]) if fits else None


def _number(patch: ModelPatch, name: str, outlet: OutletId, rank: int) -> OutletId:
    """A tensor of one element in so many axes."""
    model = patch.target
    while isinstance(model.nodes[outlet.node].op, (AddAxis, RmAxis)):
        outlet = model.nodes[outlet.node].inputs[0]
    x = wire_squeeze(patch.model, name, patch.tap(outlet), range(model.outlet_fact(outlet).rank))
    return wire_unsqueeze(patch.model, name, x, range(rank))


def _has_all_summed(model: TypedModel, node: TypedNode, op: EinSum, slot: int) -> bool:
    """Whether the other factor has every axis of one over which is summed, in full; and no factor has a diagonal."""
    (output,) = op.axes.outputs
    terms = op.axes.inputs[slot], op.axes.inputs[1 - slot]
    sizes = [
        dict(zip(term, fact.shape, strict=True))
        for term, fact in zip(op.axes.inputs, model.input_facts(node), strict=True)
    ]
    of_data, of_weights = sizes[slot], sizes[1 - slot]
    summed = [name for name in terms[0] if name not in output]
    plain = all(len(set(term)) == len(term) for term in terms)
    return plain and all(of_weights.get(name) == of_data[name] for name in summed)


def _product(patch: ModelPatch, node: TypedNode, slot: int, x: OutletId, integers: Array) -> OutletId:
    """The sums of products, in i32. Axes of size 1 that only the weights have are left out."""
    op = node.op
    assert isinstance(op, EinSum)  # the callers looked
    data, term, (output,) = op.axes.inputs[slot], op.axes.inputs[1 - slot], op.axes.outputs
    gone = [axis for axis, name in enumerate(term) if integers.shape[axis] == 1 and name not in data + output]
    short = "".join(name for axis, name in enumerate(term) if axis not in gone)
    weights = patch.model.add_const(f"{node.name}.integers", narrowed(integers.squeeze(tuple(gone))))
    product = EinSum(AxesMapping((data, short), (output,)), DatumType.I32)
    return wire_one(patch.model, f"{node.name}.sums", product, patch.tap(x), weights)


def _started(patch: ModelPatch, name: str, sums: OutletId, start: Array) -> OutletId:
    """Sums that begin at other numbers than 0."""
    if not start.any():
        return sums
    return wire_one(
        patch.model, f"{name}.shifted", Add(), sums, patch.model.add_const(f"{name}.start", start.astype(np.int32))
    )


def _of_weights(weights: Array, term: str, output: str) -> Array:
    """The sums of weights over the axes that a product sums over, with the axes of its output."""
    summed = tuple(axis for axis, name in enumerate(term) if name not in output)
    return _placed(weights.sum(axis=summed, dtype=np.int64), "".join(name for name in term if name in output), output)


def _placed(array: Array, names: str, output: str) -> Array:
    """An array whose axes have names, with the axes of an output: of size 1 where it has none."""
    turned = array.transpose(sorted(range(len(names)), key=lambda axis: output.index(names[axis])))
    sizes = dict(zip(names, array.shape, strict=True))
    return turned.reshape([sizes.get(name, 1) for name in output])


def _fits(start: Array, weights: Array, summed: Callable[[Array], Array]) -> bool:
    """Whether sums surely fit an i32. ``start``: what each begins at; ``summed``: how the weights are summed."""
    begin = np.abs(start)
    largest = 2 ** (8 * weights.itemsize - 1)
    if int(begin.max(initial=0)) + _DATA * largest * (weights.size // max(start.size, 1)) <= _LARGEST:
        return True  # whatever they are, they are few
    return bool((begin + _DATA * summed(np.abs(weights, dtype=np.int64)) <= _LARGEST).all())


def _as_numbers(patch: ModelPatch, name: str, sums: OutletId, factor: Array) -> OutletId:
    """Sums in i32 times a scale, in f32."""
    wide = wire_one(patch.model, f"{name}.wide", Cast(DatumType.F32), sums)
    return wire_one(patch.model, f"{name}.numbers", Mul(), wide, patch.model.add_const(f"{name}.factor", factor))


@rewrites(QuantizeLinear)
def requantized_sums(model: TypedModel, node: TypedNode, op: QuantizeLinear) -> ModelPatch | None:
    """QuantizeLinear(sums in i32 * known scale + known bias) -> Requantize(sums)"""
    scale, zero = (number(model, one) for one in node.inputs[1:])
    if op.to not in NARROW or scale is None or zero is None or scale.dtype != np.float32 or not scale > 0:
        return None
    x, offset = node.inputs[0], np.zeros((), np.float32)
    added = _with_known(model, x, Add)
    if added is not None:
        x, offset = added
    scaled = _with_known(model, x, Mul)
    wide = scaled and alone_by(model, scaled[0], Cast)
    if scaled is None or not wide or model.outlet_fact(wide.inputs[0]).datum_type is not DatumType.I32:
        return None
    ones = [1] * model.outlet_fact(node.inputs[0]).rank
    factor, shift = ((one.astype(np.float64) / float(scale)).astype(np.float32) for one in (scaled[1], offset))
    if scaled[1].dtype != np.float32 or not np.isfinite(factor).all() or not np.isfinite(shift).all():
        return None
    patch = ModelPatch(model)
    sums = patch.tap(wide.inputs[0])
    shift = shift if shift.ndim else shift.reshape(ones)
    patch.shunt(OutletId(node.id), _requantized(patch, node.name, sums, (factor, shift, zero.reshape(ones))))
    return patch


def _with_known(model: TypedModel, outlet: OutletId, kind: type[Binary]) -> tuple[OutletId, Array] | None:
    """The operands of an operator whose result nothing else reads: the one of its shape, and the known one."""
    node = alone_by(model, outlet, kind)
    if node is None:
        return None
    for slot in (0, 1):
        array, x = known(model, node.inputs[1 - slot]), node.inputs[slot]
        if array is not None and model.outlet_fact(x).shape == model.outlet_fact(outlet).shape:
            return x, array
    return None


def _requantized(patch: ModelPatch, name: str, sums: OutletId, parameters: tuple[Array, Array, Array]) -> OutletId:
    """Sums in other steps. ``parameters``: factor, offset, and zero point, in the type of the result."""
    found = [
        patch.model.add_const(f"{name}.{label}", array)
        for label, array in zip(("factor", "offset", "zero"), parameters, strict=True)
    ]
    to = DatumType.from_numpy(parameters[2].dtype)
    return wire_one(patch.model, f"{name}.steps", Requantize(to), sums, *found)


@rewrites(QuantizeLinear)
def sum_of_quantised(model: TypedModel, node: TypedNode, op: QuantizeLinear) -> ModelPatch | None:
    """QuantizeLinear(dequantised x + dequantised y), or of the difference -> SumOfSteps"""
    both = produced_by(model, node.inputs[0], Add, Sub)
    x, y = (steps_of(model, one) for one in both.inputs) if both else (None, None)
    scale, zero = (number(model, one) for one in node.inputs[1:])
    if both is None or x is None or y is None or op.to not in NARROW or scale is None or zero is None:
        return None
    sign = 1 if isinstance(both.op, Add) else -1
    factors = [x.scale / float(scale), sign * y.scale / float(scale)] if scale > 0 else [np.nan] * 2
    offset = -(x.zero * factors[0] + y.zero * factors[1])
    if scale.dtype != np.float32 or not all(abs(one) < _FAR for one in factors):
        return None
    patch, ones = ModelPatch(model), [1] * model.outlet_fact(node.inputs[0]).rank
    first, second, shift = (
        patch.model.add_const(f"{node.name}.{label}", np.full(ones, value, np.float32))
        for label, value in (("factor", factors[0]), ("other", factors[1]), ("offset", offset))
    )
    point = patch.model.add_const(f"{node.name}.zero", zero.reshape(ones))
    inputs = [patch.tap(x.integers), first, patch.tap(y.integers), second, shift, point]
    patch.shunt(OutletId(node.id), wire_one(patch.model, f"{node.name}.steps", SumOfSteps(op.to), *inputs))
    return patch


for rule in (
    conv_of_integers,
    quantized_conv,
    moved_integers,
    there_and_back,
    product_of_integers,
    quantized_product,
    zero_point_behind_product,
    requantized_sums,
    sum_of_quantised,
):
    ROWS.add(RULES, rule.name, rule)
