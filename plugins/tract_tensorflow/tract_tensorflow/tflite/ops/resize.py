"""Images (batch, height, width, channels) in other sizes."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.dims import Dim, is_symbolic, same_dim
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import (
    Coordinates,
    DynResize,
    NearestMode,
    Resize,
    Sampling,
    Sizes,
    TargetKind,
    reference,
    wire_resize,
)
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.resized_axis import places_of
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_AXES: Final = (1, 2)

_FACTORS: Final = 16
"""Sizes that are up to so many times as large as others, or as small, are looked at: f32 is exact there."""

_LONGEST: Final = 1 << 20
"""Elements of an axis, up to which neighbours are those that f32 finds; beyond, exact arithmetic finds all of them."""


@tflite_op(ROWS, "RESIZE_BILINEAR")
def resize_bilinear(node: TfliteNode, wire: Wiring) -> OutletId:
    """Each element is blended from its neighbours"""
    coordinates = Coordinates.ASYMMETRIC
    if node.flag("half_pixel_centers"):
        coordinates = Coordinates.HALF_PIXEL
    if node.flag("align_corners"):
        coordinates = Coordinates.ALIGN_CORNERS
    return _resized(node, wire, Sampling(Interpolator.LINEAR, coordinates))


@quantized_op(ROWS, "RESIZE_NEAREST_NEIGHBOR")
@tflite_op(ROWS, "RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(node: TfliteNode, wire: Wiring) -> OutletId:
    """Each element is one of the input"""
    if node.flag("align_corners"):
        sampling = Sampling(Interpolator.NEAREST, Coordinates.ALIGN_CORNERS, nearest_mode=NearestMode.ROUND_PREFER_CEIL)
    else:
        half = node.flag("half_pixel_centers")
        coordinates = Coordinates.TF_HALF_PIXEL_FOR_NN if half else Coordinates.ASYMMETRIC
        sampling = Sampling(Interpolator.NEAREST, coordinates, nearest_mode=NearestMode.FLOOR)
    return _resized(node, wire, sampling)


def _resized(node: TfliteNode, wire: Wiring, sampling: Sampling) -> OutletId:
    """One operator; where TFLite's rounding in f32 takes other neighbours, those are gathered."""
    places = places_of(wire)
    x, sizes = wire.input(0), wire.sizes(wire.input(1))
    wanted, is_nearest = wire.dims(sizes), sampling.interpolator is Interpolator.NEAREST
    if wanted is None and not is_nearest:
        kind = TargetKind.SIZES
        return wire.through(wire_resize, [x, sizes], lambda fresh: DynResize(_AXES, kind, fresh, sampling))
    left: list[tuple[int, Dim]] = []
    for place, axis in enumerate(_AXES):
        size, to = wire.shape(x)[axis], None if wanted is None else wanted[place]
        if to is None or (is_nearest and not _agree(size, to, sampling)):
            x = wire.op(Gather(axis), x, places[place].nearest().outlet)
        elif size != to:
            left.append((axis, to))
    if not left:
        return x
    return wire.op(Resize(tuple(axis for axis, _ in left), Sizes(tuple(size for _, size in left)), sampling), x)


def _agree(size: Dim, wanted: Dim, sampling: Sampling) -> bool:
    """Whether the nearest elements that f32 finds are those of exact arithmetic, so far as that is known."""
    if is_symbolic(size) or is_symbolic(wanted):
        if sampling.coordinates is Coordinates.ALIGN_CORNERS:
            return bool(same_dim(size, wanted))
        return any(same_dim(size * one, wanted) or same_dim(wanted * one, size) for one in range(1, _FACTORS + 1))
    if not int(size) or not int(wanted) or max(int(size), int(wanted)) > _LONGEST:
        return True
    found = nearest_places(int(size), int(wanted), sampling.coordinates)
    return np.array_equal(found, reference(Resize((0,), Sizes((wanted,)), sampling), np.arange(int(size))))


def nearest_places(size: int, wanted: int, coordinates: Coordinates) -> Array:
    """The element that stands at each place of the output, as f32 computes it."""
    aligned = coordinates is Coordinates.ALIGN_CORNERS and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if aligned else np.float32(size) / np.float32(wanted)
    half = np.float32(0.5 if coordinates is Coordinates.TF_HALF_PIXEL_FOR_NN else 0)
    places = ((np.arange(wanted, dtype=np.float32) + half) * scale).astype(np.float64)
    rounded = np.floor(places + 0.5) if coordinates is Coordinates.ALIGN_CORNERS else np.floor(places)
    return np.clip(rounded, 0, size - 1).astype(np.int64)
