"""Images (batch, height, width, channels) in other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.dims import Dim, is_symbolic
from tract_core.errors import FactError, Unsupported
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
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_AXES: Final = (1, 2)

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
    if node.flag("align_corners") and node.flag("half_pixel_centers"):
        raise Unsupported(f"{node.op_type} with both align_corners and half_pixel_centers")
    x, sizes = wire.input(0), wire.sizes(wire.input(1))
    if wire.rank(x) != 4:
        raise FactError(f"an image of 4 axes is wanted (batch, height, width, channels), found {wire.fact(x)}")
    known = wire.dims(sizes)
    if known is None or len(known) != len(_AXES):
        kind = TargetKind.SIZES
        return wire.through(wire_resize, [x, sizes], lambda fresh: DynResize(_AXES, kind, fresh, sampling))
    return _to_sizes(wire, x, known, sampling)


def _to_sizes(wire: Wiring, x: OutletId, wanted: Sequence[Dim], sampling: Sampling) -> OutletId:
    """One operator; where TFLite's rounding in f32 takes other neighbours, those are gathered."""
    left: list[tuple[int, Dim]] = []
    for axis, size in zip(_AXES, wanted, strict=True):
        places = _other_places(wire.shape(x)[axis], size, sampling)
        if places is None:
            left.append((axis, size))
        else:
            x = wire.op(Gather(axis), x, wire.const(places))
    left = [(axis, size) for axis, size in left if size != wire.shape(x)[axis]]
    if not left:
        return x
    return wire.op(Resize(tuple(axis for axis, _ in left), Sizes(tuple(size for _, size in left)), sampling), x)


def _other_places(size: Dim, wanted: Dim, sampling: Sampling) -> Array | None:
    """The nearest elements where f32 finds others than exact arithmetic does; ``None`` where it does not."""
    if sampling.interpolator is not Interpolator.NEAREST or is_symbolic(size) or is_symbolic(wanted):
        return None
    if not int(size) or not int(wanted) or max(int(size), int(wanted)) > _LONGEST:
        return None
    found = nearest_places(int(size), int(wanted), sampling.coordinates)
    exact = reference(Resize((0,), Sizes((wanted,)), sampling), np.arange(int(size)))
    return None if np.array_equal(found, exact) else found


def nearest_places(size: int, wanted: int, coordinates: Coordinates) -> Array:
    """The element that stands at each place of the output, as f32 computes it."""
    aligned = coordinates is Coordinates.ALIGN_CORNERS and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if aligned else np.float32(size) / np.float32(wanted)
    half = np.float32(0.5 if coordinates is Coordinates.TF_HALF_PIXEL_FOR_NN else 0)
    places = ((np.arange(wanted, dtype=np.float32) + half) * scale).astype(np.float64)
    rounded = np.floor(places + 0.5) if coordinates is Coordinates.ALIGN_CORNERS else np.floor(places)
    return np.clip(rounded, 0, size - 1).astype(np.int64)
