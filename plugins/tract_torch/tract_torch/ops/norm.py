"""Normalisations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from tract_core.dims import Dim, product
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.norm import wire_batch_norm, wire_group_norm, wire_instance_norm, wire_layer_norm
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
def native_layer_norm(call: Call, wire: NodeWiring) -> Sequence[OutletId | Wired]:
    """The same, and mean and inverse deviation of each"""
    x = call.tensor("input")
    axes = range(x.rank - len(call.dims("normalized_shape")), x.rank)
    return layer_norm(call, wire), *_statistics(call, x, axes)


@aten(ROWS, "aten.native_group_norm")
def native_group_norm(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """Each group of channels of each item standardised, and mean and inverse deviation of each group"""
    x, groups, eps = call.tensor("input"), call.integer("group"), call.number("eps")
    scale, bias = _per_channel(call, wire, x.outlet)
    found = x.through(wire_group_norm, groups, scale=scale, bias=bias, eps=eps)
    items, channels, *rest = x.shape
    grouped = x.reshape((items, groups, product((channels, *rest)) // groups))
    return found, *(one.squeeze([2]) for one in _statistics(call, grouped, (2,)))


def _statistics(call: Call, x: Wired, axes: Iterable[int]) -> list[Wired]:
    """Mean and inverse deviation over axes, which keep size 1, in the type that PyTorch gives them."""
    mean, variance = _moments(x.cast(computed_in(x.dtype)), axes)
    inverse = (variance + call.number("eps")).rsqrt()
    return _as_results((mean, inverse), call.results[1:3])


def _as_results(found: Iterable[Wired], results: Iterable[torch.Tensor]) -> list[Wired]:
    """Each in the type that PyTorch gives it; no more than there are results."""
    return [one.cast(datum_type(like.dtype)) for one, like in zip(found, results, strict=False)]


def _moments(x: Wired, axes: Iterable[int]) -> tuple[Wired, Wired]:
    """Mean and variance over axes, which keep size 1."""
    axes = tuple(axes)
    mean = x.mean(axes)
    return mean, (x - mean).mean_of_squares(axes)


@aten(ROWS, "aten.batch_norm")
def batch_norm(call: Call, wire: NodeWiring) -> Wired:
    """Each channel standardised by what is known of it, or by the batch, times a scale, plus a bias"""
    return _by_batch(call, wire)[0] if call.flag("training") else _by_known(call, wire)


@aten(ROWS, "aten._native_batch_norm_legit_no_training", "aten._batch_norm_no_update")
def batch_norm_no_training(call: Call, wire: NodeWiring) -> Sequence[OutletId | Wired]:
    """Each channel standardised by what is known of it, times a scale, plus a bias; there are no other results"""
    nothing = (wire.const(np.zeros(one.shape, datum_type(one.dtype).numpy)) for one in call.results[1:])
    return _by_known(call, wire), *nothing


@aten(ROWS, "aten._native_batch_norm_legit.no_stats")
def batch_norm_by_batch(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """Each channel standardised by the batch, times a scale, plus a bias; its mean and its inverse deviation"""
    return _by_batch(call, wire)


@aten(ROWS, "aten._native_batch_norm_legit_functional")
def batch_norm_in_training(call: Call, wire: NodeWiring) -> Sequence[OutletId | Wired]:
    """The same, and what is known of each channel, moved towards the batch; as PyTorch writes what changes both"""
    names = ("running_mean", "running_var")
    if not call.flag("training"):
        return *batch_norm_no_training(call, wire), *(call.input(name) for name in names)
    found, mean, inverse = _by_batch(call, wire)
    axes = [axis for axis in range(found.rank) if axis != 1]
    new = [one.squeeze(axes) for one in _moments(call.tensor("input").cast(mean.dtype), axes)]
    new[1] = _of_sample(new[1], product(found.shape[axis] for axis in axes))
    share = call.number("momentum")
    moved = [_moved(call.tensor(name), one, share) for name, one in zip(names, new, strict=True)]
    return found, mean, inverse, *_as_results(moved, call.results[3:])


def _of_sample(variance: Wired, count: Dim) -> Wired:
    """The variance of what a sample is of: the sum of squares is shared by one less than there are."""
    wire = variance.wire
    size, others = (Wired(wire, wire.const(one)).cast(variance.dtype) for one in (count, count - 1))
    return variance * (size / others)


def _moved(old: Wired, new: Wired, share: float) -> Wired:
    """A share of the way from an old value to a new one, in the type of the new one."""
    old = old.cast(new.dtype)
    return old + times(new - old, share)


def _by_known(call: Call, wire: NodeWiring) -> Wired:
    x, eps = call.tensor("input"), call.number("eps")
    scale, bias = _per_channel(call, wire, x.outlet)
    kind = wire.dtype(scale)
    mean, variance = (wire.cast(call.input(f"running_{name}"), kind) for name in ("mean", "var"))
    wide = x.cast(kind)
    found = wide.through(wire_batch_norm, scale=scale, bias=bias, mean=mean, variance=variance, eps=eps)
    return found.cast(x.dtype)


def _by_batch(call: Call, wire: NodeWiring) -> list[Wired]:
    """The normalised batch, and mean and inverse deviation of each channel."""
    x, eps = call.tensor("input"), call.number("eps")
    scale, bias = _per_channel(call, wire, x.outlet)
    axes = tuple(axis for axis in range(x.rank) if axis != 1)
    wide = x.cast(computed_in(x.dtype))
    mean, variance = (one.squeeze(axes) for one in _moments(wide, axes))
    scale, bias = (wire.cast(one, wide.dtype) for one in (scale, bias))
    m, v = mean.outlet, variance.outlet
    found = wide.through(wire_batch_norm, scale=scale, bias=bias, mean=m, variance=v, eps=eps)
    return _as_results((found, mean, (variance + eps).rsqrt()), call.results)


@aten(ROWS, "aten.instance_norm")
def instance_norm(call: Call, wire: NodeWiring) -> OutletId | Wired:
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
