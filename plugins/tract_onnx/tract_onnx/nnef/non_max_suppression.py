"""Boxes that do not overlap much with better ones."""

from __future__ import annotations

from math import inf

import numpy as np
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, ONNX, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.ops.wiring import fresh_size
from tract_core.plugins.tables import Rows

ROWS = Rows()


@reads(
    ROWS,
    ONNX,
    "tract_onnx_non_max_suppression(boxes: tensor<scalar>, scores: tensor<scalar>,"
    " max_output_boxes_per_class: tensor<integer> = 0, iou_threshold: tensor<scalar> = 0.0,"
    " score_threshold: tensor<scalar> = false, center_point_box: logical = 0, announced: integer[] = false)"
    " -> (selected: tensor<integer>)",
)
def read_non_max_suppression(call: Call) -> OutletId:
    """Image, class and number of each box that is kept; ``announced`` says how many there will be."""
    most = call.without_axes(call.whole("max_output_boxes_per_class"))
    overlap = call.without_axes(call.input("iou_threshold", DatumType.F32))
    given = call.optional_input("score_threshold", DatumType.F32)
    least = call.constant_array(np.array(-inf, np.float32)) if given is None else call.without_axes(given)
    announced = call.announced(1)
    count: Dim = fresh_size(call.model, f"{call.node}_boxes") if announced is None else announced[0]
    op = NonMaxSuppression(call.flag("center_point_box"), count)
    return call.op(op, call.input("boxes"), call.input("scores"), most, overlap, least)


@ROWS.row(NNEF_WRITE, NonMaxSuppression)
def write_non_max_suppression(op: NonMaxSuppression, node: Spelling) -> Invocation | None:
    """With the number of boxes that it announces, which other engines pass over."""
    named = {"center_point_box": int(op.centred), "announced": [op.count]}
    return node.invoke("tract_onnx_non_max_suppression", *node.inputs, **named, registry=ONNX)
