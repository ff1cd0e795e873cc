"""Regions of images, each brought to one size, of torchvision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.roi_align import MaxRoiPool, RoiAlign
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "torchvision.roi_align")
def roi_align(call: Call, wire: NodeWiring) -> OutletId:
    """The mean of interpolated points of each cell of each region"""
    return _aligned(call, wire, half_pixel=call.flag("aligned"))


def _aligned(call: Call, wire: NodeWiring, *, half_pixel: bool) -> OutletId:
    regions = call.input("rois")
    image_of, corners = (wire.op(Slice(1, *bounds), regions) for bounds in ((0, 1), (1, 5)))
    scale, samples = call.number("spatial_scale"), max(call.integer("sampling_ratio"), 0)
    op = RoiAlign(*_size(call), scale, samples, half_pixel=half_pixel)
    return wire.op(op, call.input("input"), corners, wire.i64(wire.squeeze(image_of, [1])))


def _size(call: Call) -> tuple[int, int]:
    return call.integer("pooled_height"), call.integer("pooled_width")


@aten(ROWS, "torchvision.roi_pool")
def roi_pool(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The largest pixel of each cell of each region; which one it is, only training asks"""
    op = MaxRoiPool(*_size(call), call.number("spatial_scale"))
    return (wire.op(op, call.input("input"), call.input("rois")),)


@aten(ROWS, "torchvision.ps_roi_align")
def ps_roi_align(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The same means, each cell of a region taken from channels of its own; which ones, only training asks"""
    height, width = _size(call)
    found = _aligned(call, wire, half_pixel=True)
    count, channels = wire.shape(found)[:2]
    found = wire.reshape(found, (count, channels // (height * width), height, width, height, width))
    rows, columns = (np.eye(size, dtype=bool) for size in (height, width))
    own = wire.const((rows[:, None, :, None] & columns[None, :, None, :])[None, None])
    found = wire.op(Reduce((2, 3), Reducer.SUM), wire.select(own, found, wire.scalar(0, found)))
    return (wire.squeeze(found, [2, 3]),)


@aten(ROWS, "torchvision.ps_roi_pool")
def ps_roi_pool(call: Call, wire: NodeWiring) -> OutletId:
    """Refused: means of whole pixels"""
    raise Unsupported("torchvision.ops.ps_roi_pool", hint="take torchvision.ops.ps_roi_align, which interpolates")
