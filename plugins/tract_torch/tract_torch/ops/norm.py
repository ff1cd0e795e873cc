"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Mul, Sub
from tract_core.ops.elementwise import Rsqrt
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.norm import wire_batch_norm, wire_group_norm, wire_instance_norm, wire_layer_norm
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import computed_in, times
from tract_torch.registry import aten
from tract_torch.tensors import datum_type
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.layer_norm")
def layer_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Standardised over the last axes, times a scale, plus a bias"""
    x = call.input("input")
    axis = wire.rank(x) - len(call.dims("normalized_shape"))
    scale, bias = call.optional_input("weight"), call.optional_input("bias")
    return wire.through(wire_layer_norm, x, axis, eps=call.number("eps"), scale=scale, bias=bias)


@aten(ROWS, "aten.group_norm")
def group_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Each group of channels of each item standardised, times a scale, plus a bias"""
    x, eps = call.input("input"), call.number("eps")
    scale, bias = _per_channel(call, wire, x)
    return wire.through(wire_group_norm, x, call.integer("num_groups"), scale=scale, bias=bias, eps=eps)


@aten(ROWS, "aten.native_layer_norm")
def native_layer_norm(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The same, and mean and inverse deviation of each"""
    x = call.input("input")
    axes = range(wire.rank(x) - len(call.dims("normalized_shape")), wire.rank(x))
    return layer_norm(call, wire), *_statistics(call, wire, x, tuple(axes))


@aten(ROWS, "aten.native_group_norm")
def native_group_norm(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """Each group of channels of each item standardised, and mean and inverse deviation of each group"""
    x, groups = call.input("input"), call.integer("group")
    scale, bias = _per_channel(call, wire, x)
    found = wire.through(wire_group_norm, x, groups, scale=scale, bias=bias, eps=call.number("eps"))
    items, channels, *rest = wire.shape(x)
    grouped = wire.reshape(x, (items, groups, product((channels, *rest)) // groups))
    return found, *(wire.squeeze(one, [2]) for one in _statistics(call, wire, grouped, (2,)))


def _statistics(call: Call, wire: NodeWiring, x: OutletId, axes: Sequence[int]) -> list[OutletId]:
    """Mean and inverse deviation over axes, which keep size 1, in the type that PyTorch gives them."""
    x = wire.cast(x, computed_in(wire.dtype(x)))
    mean, variance = _moments(wire, x, axes)
    kinds = (datum_type(one.dtype) for one in call.results[1:3])
    inverse = wire.op(Rsqrt(), wire.op(Add(), variance, wire.scalar(call.number("eps"), variance)))
    return [wire.cast(one, kind) for one, kind in zip((mean, inverse), kinds, strict=True)]


def _moments(wire: NodeWiring, x: OutletId, axes: Sequence[int]) -> tuple[OutletId, OutletId]:
    """Mean and variance over axes, which keep size 1."""
    mean = wire.through(wire_mean, x, axes)
    return mean, wire.op(Reduce(tuple(axes), Reducer.MEAN_OF_SQUARES), wire.op(Sub(), x, mean))


@aten(ROWS, "aten.batch_norm")
def batch_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Each channel standardised by what is known of it, or by the batch, times a scale, plus a bias"""
    return _by_batch(call, wire)[0] if call.flag("training") else _by_known(call, wire)


@aten(ROWS, "aten._native_batch_norm_legit_no_training", "aten._batch_norm_no_update")
def batch_norm_no_training(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """Each channel standardised by what is known of it, times a scale, plus a bias; there are no other results"""
    nothing = (wire.const(np.zeros(one.shape, datum_type(one.dtype).numpy)) for one in call.results[1:])
    return _by_known(call, wire), *nothing


@aten(ROWS, "aten._native_batch_norm_legit.no_stats")
def batch_norm_by_batch(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """Each channel standardised by the batch, times a scale, plus a bias; its mean and its inverse deviation"""
    return _by_batch(call, wire)


@aten(ROWS, "aten._native_batch_norm_legit_functional")
def batch_norm_in_training(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The same, and what is known of each channel, moved towards the batch; as PyTorch writes what changes both"""
    names = ("running_mean", "running_var")
    if not call.flag("training"):
        return *batch_norm_no_training(call, wire), *(call.input(name) for name in names)
    found, mean, inverse = _by_batch(call, wire)
    axes = [axis for axis in range(wire.rank(found)) if axis != 1]
    moments = _moments(wire, wire.cast(call.input("input"), wire.dtype(mean)), axes)
    of_batch = [wire.squeeze(one, axes) for one in moments]
    shape = wire.shape(found)
    of_batch[1] = _of_sample(wire, of_batch[1], product(shape[axis] for axis in axes))
    momentum = call.number("momentum")
    moved = [_moved(wire, call.input(name), new, momentum) for name, new in zip(names, of_batch, strict=True)]
    kinds = (datum_type(one.dtype) for one in call.results[3:])
    return found, mean, inverse, *(wire.cast(one, kind) for one, kind in zip(moved, kinds, strict=True))


def _of_sample(wire: NodeWiring, variance: OutletId, count: Dim) -> OutletId:
    """The variance of what a sample is of: the sum of squares is shared by one less than there are."""
    size, others = (wire.cast(wire.const(one), wire.dtype(variance)) for one in (count, count - 1))
    return wire.binary(Mul(), variance, wire.binary(Div(), size, others))


def _moved(wire: NodeWiring, old: OutletId, new: OutletId, share: float) -> OutletId:
    """A share of the way from an old value to a new one, in the type of the new one."""
    a, b = Wired(wire, old).cast(wire.dtype(new)), Wired(wire, new)
    return (a + times(b - a, share)).outlet


def _by_known(call: Call, wire: NodeWiring) -> OutletId:
    x = call.input("input")
    scale, bias = _per_channel(call, wire, x)
    known = [wire.cast(call.input(f"running_{name}"), wire.dtype(scale)) for name in ("mean", "var")]
    eps = call.number("eps")
    found = wire.through(
        wire_batch_norm,
        wire.cast(x, wire.dtype(scale)),
        scale=scale,
        bias=bias,
        mean=known[0],
        variance=known[1],
        eps=eps,
    )
    return wire.cast(found, wire.dtype(x))


def _by_batch(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The normalised batch, and mean and inverse deviation of each channel."""
    x = call.input("input")
    scale, bias = _per_channel(call, wire, x)
    axes = tuple(axis for axis in range(wire.rank(x)) if axis != 1)
    wide = wire.cast(x, computed_in(wire.dtype(x)))
    mean, variance = (wire.squeeze(one, axes) for one in _moments(wire, wide, axes))
    eps = call.number("eps")
    scale, bias = (wire.cast(one, wire.dtype(wide)) for one in (scale, bias))
    found = wire.through(wire_batch_norm, wide, scale=scale, bias=bias, mean=mean, variance=variance, eps=eps)
    inverse = wire.op(Rsqrt(), wire.op(Add(), variance, wire.scalar(eps, variance)))
    kinds = [datum_type(one.dtype) for one in call.results]
    several = (wire.cast(one, kind) for one, kind in zip((found, mean, inverse), kinds, strict=False))
    return list(several)


@aten(ROWS, "aten.instance_norm")
def instance_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Each channel of each item standardised, times a scale, plus a bias"""
    if not call.flag("use_input_stats"):
        return _by_known(call, wire)
    x = call.input("input")
    scale, bias = _per_channel(call, wire, x)
    return wire.through(wire_instance_norm, x, scale=scale, bias=bias, eps=call.number("eps"))


def _per_channel(call: Call, wire: NodeWiring, x: OutletId) -> tuple[OutletId, OutletId]:
    """Scale and bias of each channel, in the wider one of their types and that of x; 1 and 0 where there are none."""
    given = [call.optional_input(name) for name in ("weight", "bias")]
    kind = max((wire.dtype(one) for one in (x, *given) if one is not None), key=lambda one: one.itemsize)
    filled = (
        wire.broadcast(wire.const(np.full(1, value, kind.numpy)), wire.shape(x)[1:2])
        if one is None
        else wire.cast(one, kind)
        for one, value in zip(given, (1, 0), strict=True)
    )
    scale, bias = filled
    return scale, bias
