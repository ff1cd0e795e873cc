"""Boxes that do not overlap much with better ones, of torchvision."""

from __future__ import annotations

from math import inf

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "torchvision.nms")
def nms(call: Call, wire: NodeWiring) -> OutletId:
    """The numbers of the boxes that are kept, the best first"""
    boxes, scores = wire.unsqueeze(call.input("dets"), [0]), wire.unsqueeze(call.input("scores"), [0, 0])
    most = wire.number(wire.const([wire.shape(boxes)[1]]))
    overlap, least = (wire.const(np.array(one, np.float32)) for one in (call.value("iou_threshold"), -inf))
    found = wire.op(NonMaxSuppression(False, call.shape()[0]), boxes, scores, most, overlap, least)
    return wire.squeeze(wire.op(Slice(1, 2, 3), found), [1])
