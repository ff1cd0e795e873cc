"""Images, and anything else, resized by interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, TypeVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Max, Min
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import (
    AspectPolicy,
    Coordinates,
    DynResize,
    NearestMode,
    Sampling,
    TargetKind,
    wire_resize,
)
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

E = TypeVar("E", bound=Enum)

_MODES: Final = {
    "nearest": Interpolator.NEAREST,
    "linear": Interpolator.LINEAR,
    "bilinear": Interpolator.LINEAR,
    "cubic": Interpolator.CUBIC,
}


def _mode(node: OnnxNode) -> Interpolator:
    return _MODES[node.choice("mode", _MODES, "nearest")]


@onnx_op(ROWS, "Upsample", since=7)
def upsample_7(node: OnnxNode, wire: Wiring) -> OutletId:
    """The factors are an attribute"""
    return _by_factors(node, wire, wire.const(node.float_array("scales")))


@onnx_op(ROWS, "Upsample", since=9)
def upsample_9(node: OnnxNode, wire: Wiring) -> OutletId:
    """The factors are an input"""
    return _by_factors(node, wire, wire.input(1))


@onnx_op(ROWS, "Resize", since=10)
def resize_10(node: OnnxNode, wire: Wiring) -> OutletId:
    """As `upsample_9`; on an axis that shrinks, the nearest element is the one above"""
    factors = wire.input(1)
    if _mode(node) is not Interpolator.NEAREST:
        return _by_factors(node, wire, factors)
    one = wire.scalar(1, factors)
    shrunk = _at_factors(node, wire, wire.input(0), wire.op(Min(), factors, one), NearestMode.CEIL)
    return _at_factors(node, wire, shrunk, wire.op(Max(), factors, one), NearestMode.FLOOR)


def _by_factors(node: OnnxNode, wire: Wiring, factors: OutletId) -> OutletId:
    return _at_factors(node, wire, wire.input(0), factors, NearestMode.FLOOR)


def _at_factors(node: OnnxNode, wire: Wiring, x: OutletId, factors: OutletId, nearest: NearestMode) -> OutletId:
    """Before version 11, position p of the output stands for place p / factor."""
    sampling = Sampling(_mode(node), Coordinates.ASYMMETRIC, nearest)
    return _resize(wire, x, factors, sampling, axes=range(wire.rank(x)))


@onnx_op(ROWS, "Resize", since=11)
def resize_11(node: OnnxNode, wire: Wiring) -> OutletId:
    """The factors or the sizes are inputs; attributes say how places are counted and elements blended"""
    rank = wire.rank(wire.input(0))
    axes = node.axes("axes", rank, range(rank))
    sampling = Sampling(
        interpolator=_mode(node),
        coordinates=node.member("coordinate_transformation_mode", Coordinates, Coordinates.HALF_PIXEL),
        nearest_mode=node.member("nearest_mode", NearestMode, NearestMode.ROUND_PREFER_FLOOR),
        cubic_coeff_a=node.number("cubic_coeff_a", -0.75),
        exclude_outside=node.flag("exclude_outside"),
        antialias=node.flag("antialias"),
        extrapolation_value=node.number("extrapolation_value", 0.0),
    )
    policy = node.member("keep_aspect_ratio_policy", AspectPolicy, AspectPolicy.STRETCH)
    factors, sizes = _not_empty(wire, 2), _not_empty(wire, 3)
    if factors is not None:
        return _resize(wire, wire.input(0), factors, sampling, axes=axes)
    if sizes is not None:
        return _resize(wire, wire.input(0), wire.i64(sizes), sampling, axes=axes, policy=policy)
    raise CorruptModel("Resize has neither factors nor sizes")


def _not_empty(wire: Wiring, slot: int) -> OutletId | None:
    """An input that counts as left out when it has no elements."""
    found = wire.optional_input(slot)
    return None if found is None or wire.shape(found).volume == 0 else found


def _resize(
    wire: Wiring,
    x: OutletId,
    target: OutletId,
    sampling: Sampling,
    *,
    axes: Sequence[int],
    policy: AspectPolicy = AspectPolicy.STRETCH,
) -> OutletId:
    """``target``: for each of ``axes``, a factor, which is a float, or a size."""
    roi = None
    kind = TargetKind.SCALES if wire.dtype(target).is_float() else TargetKind.SIZES
    if sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE:
        roi = _not_empty(wire, 1)
    elif policy is AspectPolicy.STRETCH:
        axes, target = _changed(wire, x, axes, target)
    if not axes:
        return x
    inputs = [x, target] if roi is None else [x, target, wire.cast(roi, DatumType.F32)]
    return wire.through(wire_resize, inputs, lambda sizes: DynResize(tuple(axes), kind, sizes, sampling, policy))


def _changed(wire: Wiring, x: OutletId, axes: Sequence[int], target: OutletId) -> tuple[tuple[int, ...], OutletId]:
    """The axes, with their targets, without those that keep their size; as they are where the targets are computed."""
    fact = wire.fact(target)
    values: Sequence[Dim] | Sequence[float] | None = fact.dims
    if values is None and fact.constant is not None:
        values = fact.constant.reshape(-1).tolist()
    if values is None or len(values) != len(axes):
        return tuple(axes), target
    same = [
        value == 1 if fact.datum_type.is_float() else value == wire.shape(x)[axis]
        for axis, value in zip(axes, values, strict=True)
    ]
    kept = [value for value, is_same in zip(values, same, strict=True) if not is_same]
    changed = tuple(axis for axis, is_same in zip(axes, same, strict=True) if not is_same)
    if fact.datum_type.is_float():
        return changed, wire.const(np.array(kept, np.float32))
    return changed, wire.const(kept)
