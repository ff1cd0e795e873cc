"""Axes resized by interpolation.

The tract engines give a factor or a size for every axis. Which axes are resized, and what only a run can tell of their
sizes, stands in arguments that these engines pass over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import (
    AspectPolicy,
    Coordinates,
    DynResize,
    NearestMode,
    Resize,
    Sampling,
    Scales,
    Sizes,
    TargetKind,
    wire_resize,
)
from tract_core.plugins.tables import Rows
from tract_nnef.ops.resample import spell_upsample
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, ONNX, PY, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_UNUSED: Final = Sampling().nearest_mode
"""Which element is the nearest, where that means nothing."""

_CORE_NEAREST: Final = frozenset({NearestMode.FLOOR, NearestMode.ROUND_PREFER_CEIL})
"""What the tract engines can do without the operator that has all of ONNX."""

_OURS: Final = "axes: integer[] = false, announced: integer[] = false"


@reads(
    ROWS,
    CORE,
    "tract_core_resize(input: tensor<scalar>, scales: tensor<scalar> = false, sizes: tensor<integer> = false,"
    " coord_transformer: string = 'half_pixel', interpolator: string = 'nearest', nearest_mode: string = 'floor',"
    f" {_OURS}) -> (output: tensor<scalar>)",
)
def read_resize(call: Call) -> OutletId:
    """To factors, or to sizes. Raises CorruptModel unless one of these is given."""
    if call.has("scales") == call.has("sizes"):
        raise CorruptModel("tract_core_resize: wanted either 'scales' or 'sizes'")
    kind = TargetKind.SCALES if call.has("scales") else TargetKind.SIZES
    return _wired(call, kind, _sampling(call))


@reads(
    ROWS,
    ONNX,
    "tract_onnx_resize(input: tensor<scalar>, scales: tensor<scalar> = false, roi: tensor<scalar> = false,"
    " coord_transformer: string = 'half_pixel', interpolator: string = 'nearest', nearest_mode: string = 'floor',"
    " cubic_coeff_a: scalar = -0.75, exclude_outside: logical = false, antialias: logical = false,"
    f" extrapolation_value: scalar = 0.0, {_OURS}) -> (output: tensor<scalar>)",
)
def read_onnx_resize(call: Call) -> OutletId:
    """To factors, with everything that ONNX can ask for."""
    sampling = replace(
        _sampling(call),
        cubic_coeff_a=call.number("cubic_coeff_a"),
        exclude_outside=call.flag("exclude_outside"),
        antialias=call.flag("antialias"),
        extrapolation_value=call.number("extrapolation_value"),
    )
    return _wired(call, TargetKind.SCALES, sampling)


def _sampling(call: Call) -> Sampling:
    """How elements are computed. Where none is taken as the nearest, it means nothing which one would be."""
    interpolator = call.member("interpolator", Interpolator)
    nearest = call.member("nearest_mode", NearestMode)
    if interpolator is not Interpolator.NEAREST and nearest is NearestMode.FLOOR:
        nearest = _UNUSED
    coordinates = call.member("coord_transformer", Coordinates)
    return Sampling(interpolator, coordinates, nearest)


def _wired(call: Call, kind: TargetKind, sampling: Sampling) -> OutletId:
    x = call.input("input")
    rank = call.rank(x)
    axes = call.axes("axes", rank, range(rank))
    if sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE and call.has("roi"):
        regions = _of_rank(call, "roi", call.numbers("roi"), 2 * rank)
        sampling = replace(sampling, roi=tuple((regions[axis], regions[rank + axis]) for axis in axes))
    name = kind.value
    computed = call.computed(name, DatumType.I64 if kind is TargetKind.SIZES else DatumType.F32)
    if computed is None and not call.has("announced"):
        written = call.numbers(name) if kind is TargetKind.SCALES else call.dims(name)
        chosen = [_of_rank(call, name, written, rank)[axis] for axis in axes]
        return call.op(Resize(axes, _target(kind, chosen), sampling), x)
    target = call.input(name) if computed is None else computed
    if len(axes) < rank:
        raise CorruptModel(f"{call.name}: 'axes' choose from {name!r}, which must be written as an array then")
    if call.has("announced"):
        return call.op(DynResize(axes, kind, call.announced(rank) or (), sampling), x, target)
    name = call.unique("resize")
    return wire_resize(call.model, name, [x, target], lambda sizes: DynResize(axes, kind, sizes, sampling))


def _of_rank(call: Call, name: str, found: Sequence[Any], count: int) -> Sequence[Any]:
    if len(found) != count:
        raise call.misfit(name, f"has {len(found)} elements", f"{count}")
    return found


def _target(kind: TargetKind, chosen: Sequence[Any]) -> Scales | Sizes:
    return Scales(tuple(chosen)) if kind is TargetKind.SCALES else Sizes(tuple(chosen))


@ROWS.row(NNEF_WRITE, Resize)
def write_resize(op: Resize, node: Spelling) -> Invocation | None:
    """By the name of the standard if it has one, else with a factor or a size for every axis."""
    named = spell_upsample(op, node)
    if named is not None:
        return named
    shape = node.input_fact(0).shape
    axes = None if op.axes == tuple(range(len(shape))) else list(op.axes)
    if isinstance(op.target, Scales):
        kind, target = TargetKind.SCALES, _spread(op, op.target.values, [1.0] * len(shape))
    elif op.target.policy is not AspectPolicy.STRETCH:
        return None
    else:
        kind, target = TargetKind.SIZES, _spread(op, op.target.values, shape)
        factors = None if node.allows(PY) or not any(map(is_symbolic, target)) else _factors(op, shape)
        if factors is not None:
            kind, target = TargetKind.SCALES, _spread(op, factors, [1.0] * len(shape))
    return _spelled(op.sampling, node, kind, target, axes=axes, roi=_regions(op, len(shape)))


def _factors(op: Resize, shape: Sequence[Dim]) -> list[float] | None:
    """What gives the sizes that are wanted, where these are known: other engines take no sizes with symbols."""
    found: list[float] = []
    for axis, wanted in zip(op.axes, op.target.values, strict=True):
        size = shape[axis]
        if not isinstance(size, int) or not isinstance(wanted, int) or not size:
            return None
        factor = np.float32(wanted / size)
        while int(np.float32(size) * factor) < wanted:
            factor = np.nextafter(factor, np.float32(np.inf))
        found.append(float(factor))
    return found


@ROWS.row(NNEF_WRITE, DynResize)
def write_dyn_resize(op: DynResize, node: Spelling) -> Invocation | None:
    """With a computed factor or size for every axis, and the sizes that it announces."""
    every = tuple(range(node.input_fact(0).rank))
    if op.axes != every or len(node.node.inputs) > 2 or op.policy is not AspectPolicy.STRETCH:
        return None
    return _spelled(op.sampling, node, op.kind, node.input(1), announced=list(op.sizes))


def _spread(op: Resize, values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """One value for each axis: those of the axes that are not resized are from ``others``."""
    found = list(others)
    for axis, value in zip(op.axes, values, strict=True):
        found[axis] = value
    return found


def _regions(op: Resize, rank: int) -> list[float] | None:
    """The starts of the regions on all axes, then their ends."""
    if not op.sampling.roi:
        return None
    starts, ends = zip(*op.sampling.roi, strict=True)
    return [*_spread(op, starts, [0.0] * rank), *_spread(op, ends, [1.0] * rank)]


def _spelled(
    sampling: Sampling, node: Spelling, kind: TargetKind, target: object, **others: object
) -> Invocation | None:
    """By the operator of the core, or with what only ONNX has, which knows factors alone."""
    nearest, blends = sampling.nearest_mode, sampling.interpolator is not Interpolator.NEAREST
    if blends and nearest is _UNUSED:
        nearest = NearestMode.FLOOR
    elif blends and nearest is NearestMode.FLOOR:
        return None
    named = {
        kind.value: target,
        "coord_transformer": sampling.coordinates.value,
        "interpolator": sampling.interpolator.value,
        "nearest_mode": nearest.value,
        **others,
    }
    plain = Sampling(sampling.interpolator, sampling.coordinates, sampling.nearest_mode)
    cropped = sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    if sampling == plain and nearest in _CORE_NEAREST and not cropped:
        return node.invoke("tract_core_resize", node.input(0), **named, registry=CORE)
    if kind is not TargetKind.SCALES:
        return None
    more = ("cubic_coeff_a", "exclude_outside", "antialias", "extrapolation_value")
    named |= {name: getattr(sampling, name) for name in more}
    return node.invoke("tract_onnx_resize", node.input(0), **named, registry=ONNX)
