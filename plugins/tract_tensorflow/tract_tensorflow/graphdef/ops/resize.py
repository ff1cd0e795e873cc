"""Images resized by interpolation."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import AspectPolicy, Coordinates, DynResize, NearestMode, Sampling, TargetKind, wire_resize
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

_MODES: Final = {
    "ResizeBicubic": Interpolator.CUBIC,
    "ResizeBilinear": Interpolator.LINEAR,
    "ResizeNearestNeighbor": Interpolator.NEAREST,
}


@tf_op(ROWS, *_MODES)
def resize(node: GraphNode, wire: GraphWiring) -> OutletId:
    """An image (batch, height, width, channels) of the height and width that the second input holds"""
    x, sizes, mode = wire.input(0), wire.sizes(wire.input(1)), _MODES[node.op_type]
    if wire.rank(x) != 4:
        raise FactError(f"images of 4 axes are wanted, found {wire.fact(x)}")
    wire.require_shape("list of sizes", sizes, (2,))
    if mode is not Interpolator.NEAREST:
        x = wire.cast(x, DatumType.F32)
    axes, known = (1, 2), wire.dims(sizes)
    if known is not None:
        changed = [slot for slot in range(2) if known[slot] != wire.shape(x)[slot + 1]]
        axes, sizes = tuple(slot + 1 for slot in changed), wire.const([known[slot] for slot in changed])
    if not axes:
        return x
    sampling = _sampling(mode, align=node.flag("align_corners"), half=node.flag("half_pixel_centers"))
    return wire.through(
        wire_resize,
        [x, sizes],
        lambda found: DynResize(axes, TargetKind.SIZES, found, sampling, AspectPolicy.STRETCH),
    )


def _sampling(mode: Interpolator, *, align: bool, half: bool) -> Sampling:
    places = Coordinates.ALIGN_CORNERS if align else Coordinates.HALF_PIXEL if half else Coordinates.ASYMMETRIC
    if mode is Interpolator.NEAREST:
        if half and not align:
            places = Coordinates.TF_HALF_PIXEL_FOR_NN
        return Sampling(mode, places, NearestMode.ROUND_PREFER_CEIL if align else NearestMode.FLOOR)
    # With half pixels, the cubic kernel is another one, and weights outside of the image are left out.
    a = -0.5 if half else -0.75
    return Sampling(mode, places, cubic_coeff_a=a, exclude_outside=half and mode is Interpolator.CUBIC)
