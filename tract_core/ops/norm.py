"""Normalisation: `RmsNorm`, and the wiring of layer, batch, instance and group normalisation in core operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, exact_div, is_symbolic, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.elementwise import Rsqrt
from tract_core.ops.expect import arity, axis_in, element, float_type, wide
from tract_core.ops.reduce import Reduce, Reducer, mean_of_squares, wire_mean
from tract_core.ops.wiring import (
    require_shape,
    wire_binary,
    wire_cast,
    wire_one,
    wire_reshape,
    wire_unsqueeze,
)
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class RmsNorm(TypedOp):
    """x / sqrt(mean(x*x) + eps), the mean taken along ``axis``."""

    axis: int
    eps: float

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError for anything but floats, and for an axis that is not there."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        return (float_type(self, x),)


@ROWS.row(REFERENCE, RmsNorm)
def rms_norm(op: RmsNorm, x: Array) -> Array:
    """Divided by the root of the mean square."""
    wide_x = x.astype(wide(x.dtype), copy=False)
    mean = mean_of_squares(wide_x, [op.axis])
    return (wide_x / np.sqrt(mean + wide_x.dtype.type(op.eps))).astype(x.dtype, copy=False)


@ROWS.row(COST, RmsNorm)
def cost(op: RmsNorm, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A multiply-add per element for the mean, a product per element, and a reciprocal root per mean."""
    (x,) = inputs
    kind = x.datum_type.storage.name
    means = product(size for axis, size in enumerate(x.shape) if axis != op.axis)
    return {f"FMA({kind})": x.shape.volume * 2, f"DIV({kind})": means}


@ROWS.row(AXES, RmsNorm)
def axes(op: RmsNorm, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes stay in place; the normalised one is another axis on each side."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])


def wire_standardize(model: TypedModel, name: str, x: OutletId, axes: Sequence[int], eps: float) -> OutletId:
    """(x - mean(x)) / sqrt(variance(x) + eps) over ``axes``, in the type of ``x``, which must be f32 or wider.

    The variance is that of the population (divided by the number of elements), taken from the differences to the mean.
    """
    mean = wire_mean(model, f"{name}.mean", x, axes)
    centred = wire_one(model, f"{name}.centred", Sub(), x, mean)
    variance = wire_one(model, f"{name}.variance", Reduce(tuple(axes), Reducer.MEAN_OF_SQUARES), centred)
    return wire_one(model, name, Mul(), centred, _inverse_root(model, name, variance, eps))


def wire_layer_norm(
    model: TypedModel,
    name: str,
    x: OutletId,
    axis: int,
    *,
    eps: float,
    scale: OutletId | None = None,
    bias: OutletId | None = None,
) -> OutletId:
    """Standardised over all axes from ``axis`` on, times ``scale``, plus ``bias`` (aligned at the last axis).

    Narrow floats are computed in f32 and rounded once.
    """
    fact = model.outlet_fact(x)
    for role, outlet in (("scale", scale), ("bias", bias)):
        if outlet is not None:
            require_shape(model, name, role, outlet, fact.shape, stretches=True)
    wide_x = _widened(model, f"{name}.x", x)
    result = wire_standardize(model, f"{name}.standard", wide_x, range(axis, fact.rank), eps)
    result = _affine(model, name, result, scale, bias)
    return wire_cast(model, name, result, fact.datum_type)


def wire_batch_norm(
    model: TypedModel,
    name: str,
    x: OutletId,
    *,
    scale: OutletId,
    bias: OutletId,
    mean: OutletId,
    variance: OutletId,
    eps: float,
    axis: int = 1,
) -> OutletId:
    """(x - mean) / sqrt(variance + eps) * scale + bias, with one of each (rank 1) per position of ``axis``.

    Wired as one product and one sum on ``x``, so that constant parameters fold. Narrow floats are computed in f32.
    """
    fact = model.outlet_fact(x)
    parameters = {"scale": scale, "bias": bias, "mean": mean, "variance": variance}
    _require_one_each(model, name, fact, axis, parameters)
    wide_x = _widened(model, f"{name}.x", x)
    scale, bias, mean, variance = (_widened(model, f"{name}.{label}", outlet) for label, outlet in parameters.items())
    factor = wire_one(model, f"{name}.factor", Mul(), scale, _inverse_root(model, name, variance, eps))
    moved = wire_one(model, f"{name}.moved", Mul(), mean, factor)
    shift = wire_one(model, f"{name}.shift", Sub(), bias, moved)
    factor, shift = (
        _along(model, f"{name}.{label}", outlet, axis, fact.rank)
        for label, outlet in (("factor", factor), ("shift", shift))
    )
    result = _affine(model, name, wide_x, factor, shift)
    return wire_cast(model, name, result, fact.datum_type)


def wire_group_norm(
    model: TypedModel, name: str, x: OutletId, groups: Dim, *, scale: OutletId, bias: OutletId, eps: float
) -> OutletId:
    """Standardised over each of ``groups`` groups of channels (axis 1) and all axes after it, item by item of axis 0.

    ``scale`` and ``bias``: rank 1, one value per channel. Raises FactError when the channels are not a multiple of the
    groups. Narrow floats are computed in f32 and rounded once.
    """
    fact = model.outlet_fact(x)
    if fact.rank < 2:
        raise FactError(f"group normalisation wants a batch and a channel axis, found {fact}")
    channels = fact.shape[1]
    per_group = exact_div(channels, groups)
    if per_group is None and is_symbolic(channels) and not is_symbolic(groups) and int(groups) > 0:
        per_group = channels // int(groups)  # a run in which that is not even is refused
    if per_group is None:
        raise FactError(f"{channels} channels are not a multiple of {groups} groups; the input is {fact}")
    _require_one_each(model, name, fact, 1, {"scale": scale, "bias": bias})
    wide_x = _widened(model, f"{name}.x", x)
    split = (fact.shape[0], groups, per_group, *fact.shape[2:])
    grouped = wire_reshape(model, f"{name}.split", wide_x, split)
    result = wire_standardize(model, f"{name}.standard", grouped, range(2, len(split)), eps)
    result = wire_reshape(model, f"{name}.joined", result, fact.shape)
    scale, bias = (
        _along(model, f"{name}.{label}", outlet, 1, fact.rank) for label, outlet in (("scale", scale), ("bias", bias))
    )
    return wire_cast(model, name, _affine(model, name, result, scale, bias), fact.datum_type)


def wire_instance_norm(
    model: TypedModel, name: str, x: OutletId, *, scale: OutletId, bias: OutletId, eps: float
) -> OutletId:
    """Standardised over all axes from 2 on, each item (axis 0) and channel (axis 1) alone. ``scale``, ``bias``: [C]."""
    fact = model.outlet_fact(x)
    _require_one_each(model, name, fact, 1, {"scale": scale, "bias": bias})
    wide_x = _widened(model, f"{name}.x", x)
    result = wire_standardize(model, f"{name}.standard", wide_x, range(2, fact.rank), eps)
    scale, bias = (
        _along(model, f"{name}.{label}", outlet, 1, fact.rank) for label, outlet in (("scale", scale), ("bias", bias))
    )
    return wire_cast(model, name, _affine(model, name, result, scale, bias), fact.datum_type)


def _require_one_each(
    model: TypedModel, name: str, x: TypedFact, axis: int, parameters: Mapping[str, OutletId]
) -> None:
    """Each of ``parameters`` has one element per position of ``axis``. Raises FactError."""
    if not 0 <= axis < x.rank:
        raise FactError(f"an axis {axis} is wanted, of which each position is normalised alone, found {x}")
    for role, outlet in parameters.items():
        require_shape(model, name, role, outlet, (x.shape[axis],))


def _widened(model: TypedModel, name: str, x: OutletId) -> OutletId:
    kind = model.outlet_fact(x).datum_type
    return wire_cast(model, f"{name}.wide", x, DatumType.from_numpy(wide(kind.numpy)))


def _inverse_root(model: TypedModel, name: str, variance: OutletId, eps: float) -> OutletId:
    kind = model.outlet_fact(variance).datum_type
    small = model.add_const(f"{name}.eps", element(eps, kind))
    safe = wire_binary(model, f"{name}.safe", Add(), variance, small)
    return wire_one(model, f"{name}.rsqrt", Rsqrt(), safe)


def _along(model: TypedModel, name: str, vector: OutletId, axis: int, rank: int) -> OutletId:
    """A vector laid along one axis of a tensor of that rank."""
    others = [other for other in range(rank) if other != axis]
    return wire_unsqueeze(model, f"{name}.along", vector, others)


def _affine(model: TypedModel, name: str, x: OutletId, scale: OutletId | None, bias: OutletId | None) -> OutletId:
    """``x * scale + bias``, in the type of ``x``."""
    kind = model.outlet_fact(x).datum_type
    if scale is not None:
        scale = wire_cast(model, f"{name}.scale", scale, kind)
        x = wire_binary(model, f"{name}.scaled" if bias is not None else name, Mul(), x, scale)
    if bias is not None:
        x = wire_binary(model, name, Add(), x, wire_cast(model, f"{name}.bias", bias, kind))
    return x
